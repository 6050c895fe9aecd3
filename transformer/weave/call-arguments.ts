import type * as TS from "typescript";
import type { Source } from "../parser/parser";
import { callsOf, callsWithin, passedAsValues } from "../read/lockweave-calls";
import type { FindReExports } from "../read/meanings";
import { type Insertion, stringLiteral } from "../text/edits";
import { problem, type Problem } from "../text/problems";
import type { Span } from "../text/span";
import type { Plan } from "../read/plan";
import type { LockableFunction } from "../read/syntax";

/**
 * Adds the handshake to the calls of `configure(...)`, `LockModule.forRoot(...)`, and `testLocks(...)`: an argument that proves to the runtime that the build was woven.
 * A build that ignored the plugin has no such argument. It fails when the application or the test starts, before any update is lost.
 *
 * A call of `configure(...)` also gets its position, because a development server runs it again after its file was saved.
 *
 * @param pathOf see {@link WeaveOptions.pathOf}
 */
export function handshakes(
  source: Source,
  findReExports: FindReExports | undefined,
  pathOf: ((fileName: string) => string | undefined) | undefined,
): Insertion[] {
  const { ts, file } = source;
  return CALLED.flatMap((called) =>
    callsOf(source, called, findReExports).flatMap((call, index) => {
      const [only, another] = call.arguments;
      const isCompleted = another !== undefined || (only !== undefined && ts.isSpreadElement(only));
      if (isCompleted || (only === undefined && called !== "testLocks")) return [];
      const from = spanOf(file, call);
      const path = called === "configure" ? pathOf?.(file.fileName) : undefined;
      const place = path === undefined ? "" : `, ${stringLiteral(callSite(path, index))}`;
      const handshake = `"woven"${place}`;
      const [at, code] =
        only === undefined ? [call.end - 1, `void 0, ${handshake}`] : [only.end, `, ${handshake}`];
      return [{ at, pieces: [{ code, from, exact: false }] }];
    }),
  );
}

/**
 * Returns the name of a call: `my-app/src/main.ts`, or `my-app/src/main.ts#2` for the second call. It has no line number, because edits of
 * the file change that.
 */
function callSite(path: string, index: number): string {
  return index === 0 ? path : `${path}#${index + 1}`;
}

const CALLED = ["configure", "forRoot", "forRootAsync", "testLocks"] as const;

/** Reports the places of calls that may not get the argument. */
export function callsWithoutHandshake(source: Source, findReExports: FindReExports | undefined): Problem[] {
  const { ts, file } = source;
  const spread = CALLED.flatMap((called) =>
    callsOf(source, called, findReExports).flatMap(({ arguments: [first] }) =>
      first !== undefined && ts.isSpreadElement(first)
        ? [problem("handshakeSpread", spanOf(file, first), called)]
        : [],
    ),
  );
  const values = passedAsValues(source, findReExports).map(({ value, of }) =>
    problem("handshakeAsValue", spanOf(file, value), of),
  );
  return [...values, ...spread];
}

function spanOf(file: TS.SourceFile, node: TS.Node): Span {
  return { start: node.getStart(file), end: node.end };
}

/**
 * Passes the lock of a tagged function to each call of `currentLock()` in it, and in functions inside it, so that no lookup is needed.
 *
 * @param locks the names of the locks
 * @returns the insertions in each function
 */
export function currentLockArguments(
  source: Source,
  plans: readonly Plan[],
  locks: ReadonlyMap<LockableFunction, string>,
  findReExports: FindReExports | undefined,
): ReadonlyMap<LockableFunction, readonly Insertion[]> {
  const insertions = new Map<LockableFunction, Insertion[]>();
  if (plans.length === 0) return insertions;
  // The default of a parameter runs before the lock is open.
  const owners = new Map<TS.Node, Plan | undefined>();
  for (const planned of plans) owners.set(planned.fn, undefined).set(planned.fn.body, planned);
  for (const { call, owner } of callsWithin(source, "currentLock", owners, findReExports)) {
    if (owner === undefined || call.arguments.length > 0) continue;
    const { fn, at } = owner;
    const code = locks.get(fn) ?? "lock";
    const insertion: Insertion = { at: call.end - 1, pieces: [{ code, from: at, exact: false }] };
    const before = insertions.get(fn);
    if (before === undefined) insertions.set(fn, [insertion]);
    else before.push(insertion);
  }
  return insertions;
}
