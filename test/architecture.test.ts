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
  // the list of unsupported platforms. The commands that read a server use its key names, values, addresses, and the choice of a client library.
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
    "runtime/stores/declared-libraries",
    "runtime/stores/postgres/apply-migration",
    "runtime/stores/postgres/client-port",
    "runtime/stores/postgres/errors",
    "runtime/stores/postgres/keys",
    "runtime/stores/postgres/recognize",
    "runtime/stores/postgres/migration",
    "runtime/stores/postgres/open-port",
    "runtime/stores/postgres/schema-name",
    "runtime/stores/postgres/schema/version",
    "runtime/stores/postgres/statements",
    "runtime/stores/postgres/target",
    "runtime/stores/redis/address",
    "runtime/stores/redis/ioredis/options",
    "runtime/stores/redis/node-redis/options",
    "runtime/stores/redis/keys",
    "runtime/stores/value",
    "runtime/base/unsupported",
  ],
  // The build replaces this import with the version.
  runtime: ["package.json"],
};

/**
 * The folders of a part that import each other in a circle, directly or through other folders, and may. Folders at every depth count, and
 * the files directly in a folder are apart from those in its subfolders.
 */
const CIRCLES: Readonly<Record<string, readonly (readonly string[])[]>> = {
  // `analyze.ts` runs the rules, and the rules share `finding.ts`, `reach.ts`, and `calls.ts`.
  transformer: [["transformer/analyze", "transformer/analyze/rules"]],
  // The adapters, the scripts, and the cluster's code use the client port, keys, and errors of the store
  // that uses them. The adapters for PostgreSQL use its client port.
  runtime: [
    ["runtime/stores/postgres", "runtime/stores/postgres/pg", "runtime/stores/postgres/postgres-js"],
    [
      "runtime/stores/redis",
      "runtime/stores/redis/bun",
      "runtime/stores/redis/cluster",
      "runtime/stores/redis/glide",
      "runtime/stores/redis/ioredis",
      "runtime/stores/redis/node-redis",
      "runtime/stores/redis/scripts",
    ],
  ],
};

const REPOSITORY = join(__dirname, "..");

/** The adapters of client libraries, by the name of the library. Each is in a folder with this name. */
const ADAPTERS = [
  ["redis", "ioredis"],
  ["redis", "node-redis"],
  ["redis", "glide"],
  ["redis", "bun"],
  ["postgres", "pg"],
  ["postgres", "postgres-js"],
] as const;
/** The packages that adapters import, for connections by URL. */
const PACKAGES = [
  ["redis", "ioredis", "ioredis"],
  ["redis", "node-redis", "redis"],
  ["postgres", "pg", "pg"],
  ["postgres", "postgres-js", "postgres"],
] as const;

interface Import {
  readonly from: string;
  /** A path in the repository, without the file extension. Or the text of the import, if the function says so. */
  readonly to: string;
}

/** Returns all imports of a part's own files. */
function importsIn(part: string): Import[] {
  return allImportsIn(part)
    .filter(({ to }) => to.startsWith("."))
    .map(({ from, to }) => ({ from, to: slashed(join(dirname(from), to.replace(/\.js$/, ""))) }));
}

/** Returns all imports as they are written, with those of packages. */
function allImportsIn(part: string): Import[] {
  return readdirSync(join(REPOSITORY, part), { recursive: true, encoding: "utf8" })
    .filter((file) => /\.m?ts$/.test(file))
    .flatMap((file) => {
      const from = join(part, file);
      const { importedFiles } = ts.preProcessFile(readFileSync(join(REPOSITORY, from), "utf8"), true, true);
      return importedFiles.map(({ fileName }) => ({ from, to: fileName }));
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

/** Returns the groups of folders that import each other, directly or through other folders. */
function circlesIn(imports: readonly Import[]): string[][] {
  const targets = new Map<string, Set<string>>();
  for (const { from, to } of imports) {
    const [folder, other] = [slashed(dirname(from)), slashed(dirname(to))];
    if (folder !== other) targets.set(folder, (targets.get(folder) ?? new Set()).add(other));
  }
  const reachableFrom = (start: string): Set<string> => {
    const reached = new Set(targets.get(start));
    // The iteration of a set includes the folders that are added meanwhile.
    for (const folder of reached) for (const next of targets.get(folder) ?? []) reached.add(next);
    return reached;
  };
  const reachable = new Map([...targets.keys()].map((folder) => [folder, reachableFrom(folder)]));
  const circleOf = (folder: string): string[] =>
    [...(reachable.get(folder) ?? [])]
      .filter((other) => reachable.get(other)?.has(folder) === true)
      .toSorted();
  const circles = [...targets.keys()].map(circleOf).filter((circle) => circle.length > 0);
  return [...new Map(circles.map((circle) => [circle.join(), circle])).values()];
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

  test(`the folders of ${part}/, at any depth, have only the import cycles that are listed in this test`, (t) => {
    t.deepEqual(circlesIn(all), CIRCLES[part] ?? []);
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

test("the stores for Redis and for PostgreSQL import nothing from each other", (t) => {
  const [redis, postgres] = ["runtime/stores/redis/", "runtime/stores/postgres/"];
  const wrong = importsIn("runtime").filter(({ from, to }) => {
    const source = slashed(from);
    return (
      (source.startsWith(redis) && to.startsWith(postgres)) ||
      (source.startsWith(postgres) && to.startsWith(redis))
    );
  });
  t.deepEqual(wrong, []);
});

for (const [store, library] of ADAPTERS) {
  const folder = `runtime/stores/${store}/${library}/`;
  /** The only file that knows which adapters there are. */
  const recognizer = `runtime/stores/${store}/recognize-client.ts`;

  test(`only the file that recognizes clients imports the adapter of ${library}`, (t) => {
    const importers = importsIn("runtime")
      .filter(({ from, to }) => to.startsWith(folder) && !slashed(from).startsWith(folder))
      .map(({ from }) => slashed(from));
    t.deepEqual([...new Set(importers)], [recognizer]);
  });
}

for (const [store, library, packageName] of PACKAGES) {
  test(`only the adapter of ${library} imports that package`, (t) => {
    const importers = allImportsIn("runtime").filter(({ to }) => to === packageName);
    t.true(importers.length > 0);
    t.true(importers.every(({ from }) => slashed(from).startsWith(`runtime/stores/${store}/${library}/`)));
  });
}
