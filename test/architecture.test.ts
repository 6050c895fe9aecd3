import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative, sep } from "node:path";
import test from "ava";
import ts from "typescript";

/** The folders of a part, from the lowest layer up, and the folders that each may import from. A file in no folder is an entry point. */
type Folders = Readonly<Record<string, readonly string[]>>;

/** The linter rejects import cycles between files. */
const PARTS: Readonly<Record<string, Folders>> = {
  transformer: {
    text: [],
    parser: [],
    terminal: [],
    resolve: ["parser"],
    read: ["text", "parser"],
    weave: ["text", "parser", "read"],
    analyze: ["text", "read"],
    verify: ["text", "parser", "terminal", "resolve", "read", "weave", "analyze"],
    hosts: ["text", "parser", "resolve", "read", "weave", "analyze", "verify"],
    console: ["terminal"],
    cli: ["text", "parser", "terminal", "resolve", "read", "weave", "analyze", "verify", "hosts", "console"],
  },
  runtime: {
    base: [],
    attributes: ["base"],
    stores: ["base"],
    commands: ["base", "stores"],
    queue: ["base", "stores", "commands"],
    lock: ["base", "attributes", "stores", "queue"],
    diagnostics: ["base", "stores", "lock"],
    config: ["base", "attributes", "stores", "queue", "lock", "diagnostics"],
    admin: ["base", "stores", "queue", "lock", "diagnostics", "config"],
    woven: ["base", "lock", "config"],
  },
};

/** The files that a part may import from the other one. */
const OUTSIDE_IMPORTS: Readonly<Record<string, readonly string[]>> = {
  // `lockweave list` shows keys as the runtime makes them. Both parts share the table of attributes, their conflicts, the limits, and
  // the list of unsupported platforms. The commands that read a server use its key names, values, and addresses.
  transformer: [
    "runtime/diagnostics/announced",
    "runtime/attributes/conflicts",
    "runtime/attributes/documentation",
    "runtime/attributes/table",
    "runtime/attributes/tag-attributes",
    "runtime/base/errors",
    "runtime/index",
    "runtime/base/key",
    "runtime/base/limits",
    "runtime/base/options",
    "runtime/base/runner",
    "runtime/base/format-value",
    "runtime/stores/redis/address",
    "runtime/stores/redis/keys",
    "runtime/stores/value",
    "runtime/base/unsupported",
  ],
  // The build replaces this import with the version.
  runtime: ["package.json"],
};

const REPOSITORY = join(__dirname, "..");

interface Import {
  readonly from: string;
  /** A path in the repository, without the file extension. */
  readonly to: string;
}

function importsIn(part: string): Import[] {
  return readdirSync(join(REPOSITORY, part), { recursive: true, encoding: "utf8" })
    .filter((file) => /\.m?ts$/.test(file))
    .flatMap((file) => {
      const from = join(part, file);
      const { importedFiles } = ts.preProcessFile(readFileSync(join(REPOSITORY, from), "utf8"), true, true);
      return importedFiles
        .filter(({ fileName }) => fileName.startsWith("."))
        .map(({ fileName }) => ({ from, to: slashed(join(dirname(from), fileName.replace(/\.js$/, ""))) }));
    });
}

function slashed(path: string): string {
  return relative(".", path).split(sep).join("/");
}

/** The folder of a file, or `undefined` for a file in no folder. */
function folderOf(path: string): string | undefined {
  const [, folder, file] = path.split("/");
  return file === undefined ? undefined : folder;
}

for (const [part, folders] of Object.entries(PARTS)) {
  const all = importsIn(part);

  test(`the folders of ${part}/ import only from lower folders, including types`, (t) => {
    t.true(all.length > 50);
    const wrong = all.filter(({ from, to }) => {
      const [folder, other] = [folderOf(from), folderOf(to)];
      if (!to.startsWith(`${part}/`) || folder === undefined || folder === other) return false;
      return other === undefined || !folders[folder]?.includes(other);
    });
    t.deepEqual(wrong, []);
  });

  test(`every folder of ${part}/ is listed in this test`, (t) => {
    const found = new Set(all.map(({ from }) => folderOf(from)).filter((folder) => folder !== undefined));
    t.deepEqual(
      [...found].filter((folder) => !(folder in folders)),
      [],
    );
  });

  test(`${part}/ imports exactly the outside files that are listed in this test`, (t) => {
    const imported = new Set(all.map(({ to }) => to).filter((to) => !to.startsWith(`${part}/`)));
    t.deepEqual([...imported].toSorted(), [...(OUTSIDE_IMPORTS[part] ?? [])].toSorted());
  });
}
