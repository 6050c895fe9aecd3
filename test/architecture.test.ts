import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative, sep } from "node:path";
import test from "ava";
import ts from "typescript";

interface Part {
  /** The folders, from the lowest layer up, and the folders that each may import from. */
  readonly folders: Readonly<Record<string, readonly string[]>>;
  /** Files in no folder that every file may import. They import only each other. The other files there are entry points. */
  readonly shared: readonly string[];
}

/** The linter rejects import cycles between files. */
const PARTS: Readonly<Record<string, Part>> = {
  transformer: {
    folders: {
      text: [],
      parser: [],
      read: ["text", "parser"],
      weave: ["text", "parser", "read"],
      analyze: ["text", "read"],
      verify: ["text", "parser", "read", "weave", "analyze"],
      hosts: ["text", "parser", "read", "weave", "analyze", "verify"],
      cli: ["text", "parser", "read", "weave", "analyze", "verify", "hosts"],
    },
    shared: [],
  },
  runtime: {
    folders: {
      attributes: [],
      stores: [],
      commands: ["stores"],
      queue: ["stores", "commands"],
      lock: ["attributes", "stores", "queue"],
    },
    shared: [
      "clock",
      "duration",
      "errors",
      "fifo",
      "format-value",
      "json-field",
      "key",
      "limits",
      "logger",
      "node-crypto",
      "on-signals",
      "options",
      "recycling-map",
      "request-id",
      "root-context",
      "suspension",
      "unsupported",
      "uuid",
    ],
  },
};

/** The files that a part may import from the other one. */
const OUTSIDE_IMPORTS: Readonly<Record<string, readonly string[]>> = {
  // `lockweave list` shows keys as the runtime makes them. Both parts share the table of attributes, their conflicts, the limits, and
  // the list of unsupported platforms. The commands that read a server use its key names, values, and addresses.
  transformer: [
    "runtime/announced",
    "runtime/attributes/conflicts",
    "runtime/attributes/documentation",
    "runtime/attributes/table",
    "runtime/attributes/tag-attributes",
    "runtime/errors",
    "runtime/index",
    "runtime/key",
    "runtime/limits",
    "runtime/options",
    "runtime/format-value",
    "runtime/stores/redis/address",
    "runtime/stores/redis/keys",
    "runtime/stores/value",
    "runtime/unsupported",
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

for (const [part, { folders, shared }] of Object.entries(PARTS)) {
  const all = importsIn(part);
  const isShared = (path: string): boolean => shared.includes(path.split("/")[1] ?? "");

  test(`the folders of ${part}/ import only from lower folders, including types`, (t) => {
    t.true(all.length > 50);
    const wrong = all.filter(({ from, to }) => {
      const [folder, other] = [folderOf(from), folderOf(to)];
      if (!to.startsWith(`${part}/`) || isShared(to)) return false;
      if (folder === undefined) return isShared(from.replace(/\.m?ts$/, ""));
      return folder !== other && (other === undefined || !folders[folder]?.includes(other));
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
