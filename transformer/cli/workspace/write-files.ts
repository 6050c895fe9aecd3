import { randomUUID } from "node:crypto";
import {
  closeSync,
  existsSync,
  fchmodSync,
  fchownSync,
  fsyncSync,
  lstatSync,
  mkdirSync,
  openSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { basename, dirname, join, relative, resolve, sep } from "node:path";
import { UsageError } from "../../terminal/usage-error";

export interface FileChange {
  readonly path: string;
  /** The text on which the change is based. `undefined` if there was no such file. */
  readonly before: string | undefined;
  readonly after: string;
}

/**
 * Replaces each file by renaming a new file next to it, with the mode and owner of the old file. It writes all new files before it renames
 * the first. If a rename fails, it writes the old files again. So a file that cannot be written leaves every file unchanged.
 *
 * @param root the project's directory. Symbolic links that lead out of it are rejected.
 * @throws {UsageError} if a file cannot be written, leads out of the project, or has changed since it was read
 */
export function writeFiles(root: string, changes: readonly FileChange[]): void {
  const staged: Staged[] = [];
  const renamed: Staged[] = [];
  try {
    for (const { path, before, after } of changes) {
      const target = targetOf(path, root);
      const old = existsSync(target) ? readFileSync(target) : undefined;
      const isMarked = old?.subarray(0, BYTE_ORDER_MARK.length).equals(BYTE_ORDER_MARK) === true;
      const text = old?.subarray(isMarked ? BYTE_ORDER_MARK.length : 0).toString();
      if (text !== before?.replace(/^\uFEFF/, ""))
        throw new UsageError(
          `${path} has changed in the meantime, so nothing was written. Fix: run the command again.`,
        );
      const bytes = Buffer.from(after.replace(/^\uFEFF/, ""));
      mkdirSync(dirname(target), { recursive: true });
      const temporary = join(dirname(target), `.${basename(target)}.${randomUUID()}.tmp`);
      staged.push({ path, old, temporary, target });
      stage(temporary, isMarked ? Buffer.concat([BYTE_ORDER_MARK, bytes]) : bytes, target);
    }
    for (const one of staged) {
      renameSync(one.temporary, one.target);
      renamed.push(one);
    }
  } catch (error) {
    for (const { temporary } of staged) rmSync(temporary, { force: true });
    if (error instanceof UsageError) throw error;
    const left = renamed.filter((one) => !isUndone(one)).map(({ path }) => path);
    const changed = left.length === 0 ? "" : ` These files are changed already: ${left.join(", ")}.`;
    throw new UsageError(
      `The files cannot be written: ${error instanceof Error ? error.message : String(error)}.${changed}`,
    );
  }
}

/** A new file next to the one that it replaces. */
interface Staged {
  readonly path: string;
  /** The bytes of the old file. `undefined` if there was none. */
  readonly old: Buffer | undefined;
  readonly temporary: string;
  readonly target: string;
}

/** Puts the old file back in the place of the new one. Returns whether that succeeded. */
function isUndone({ old, temporary, target }: Staged): boolean {
  try {
    if (old === undefined) {
      rmSync(target);
    } else {
      stage(temporary, old, target);
      renameSync(temporary, target);
    }
    return true;
  } catch {
    rmSync(temporary, { force: true });
    return false;
  }
}

const BYTE_ORDER_MARK = Buffer.from("\uFEFF");

/** Resolves symbolic links, but rejects those that lead out of the project. */
function targetOf(path: string, root: string): string {
  const full = resolve(root, path);
  const realRoot = realpathSync(root);
  const isLink = lstatSync(full, { throwIfNoEntry: false })?.isSymbolicLink() === true;
  if (isLink && !existsSync(full))
    throw new UsageError(`${path} is a symbolic link to a file that does not exist. Fix: remove it.`);
  const real = realPath(full);
  // Sources of a referenced project may be in a directory next to this one, without a symbolic link.
  const isPlain = real === full || real === join(realRoot, relative(resolve(root), full));
  if (isPlain || isInside(real, realRoot)) return real;
  throw new UsageError(
    `${path} points outside the project, to ${real}, so nothing was written. Fix: replace the symbolic link with a file, or change ${real} by hand.`,
  );
}

/** Resolves the path of a file that may not exist yet. */
function realPath(path: string): string {
  return existsSync(path) ? realpathSync(path) : join(realPath(dirname(path)), basename(path));
}

function isInside(path: string, dir: string): boolean {
  return path.startsWith(dir.endsWith(sep) ? dir : `${dir}${sep}`);
}

/** Flushes the file to disk before the rename, so that a power failure leaves the old text or the new one. */
function stage(temporary: string, bytes: Buffer, target: string): void {
  const old = statSync(target, { throwIfNoEntry: false });
  const file = openSync(temporary, "wx", 0o666);
  try {
    writeFileSync(file, bytes);
    if (old !== undefined) {
      fchmodSync(file, old.mode & 0o7777);
      if (old.uid !== process.getuid?.()) keepOwner(file, old.uid, old.gid);
    }
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}

function keepOwner(file: number, uid: number, gid: number): void {
  try {
    fchownSync(file, uid, gid);
  } catch {
    // Only a privileged user may change the owner of a file.
  }
}
