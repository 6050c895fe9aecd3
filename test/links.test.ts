import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import test from "ava";
import packageJson from "../package.json";

const root = resolve(__dirname, "..");
const page = (file: string): string => readFileSync(join(root, file), "utf8");
const pagesIn = (folder: string): readonly string[] =>
  readdirSync(join(root, folder))
    .filter((name) => name.endsWith(".md"))
    .map((name) => `${folder}/${name}`);

/** npm packs these, whatever `files` says. */
const ALWAYS_PACKED = new Set(["README.md", "README.zh-CN.md", "LICENSE", "package.json"]);
const PACKED_PAGES = ["README.md", "README.zh-CN.md", "CHANGELOG.md", ...pagesIn("docs")];
const OTHER_PAGES = [
  "CONTRIBUTING.md",
  "SECURITY.md",
  "examples/README.md",
  "bench/README.md",
  "runtime/README.md",
  "transformer/README.md",
  "test/guarantees.md",
  "test/matrix/hosts.md",
  "test/spec/README.md",
  ...pagesIn("docs/decisions"),
];

interface Link {
  /** The file that it leads to, from the root of the repository. */
  readonly target: string;
  readonly heading: string | undefined;
}

/** Returns the links and images of a page, except those to other sites. Links in code do not count. */
function linksIn(file: string): readonly Link[] {
  const text = page(file).replaceAll(/^```.*?^```$/gms, "");
  return [...text.matchAll(/\]\((?!https?:)([^)#\s]*)(?:#([^)]*))?\)/g)].map(([, path = "", heading]) => ({
    target: path === "" ? file : join(dirname(file), path),
    heading,
  }));
}

/** Returns the anchors of the headings, as GitHub makes them. */
function anchorsIn(file: string): readonly string[] {
  return [...page(file).matchAll(/^#+ (.*)$/gm)].map(([, heading = ""]) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N} _-]/gu, "")
      .replaceAll(" ", "-"),
  );
}

/** Whether npm packs a file or a folder, according to `files` in package.json. */
function isPacked(path: string): boolean {
  const { files } = packageJson;
  const isIn = (names: readonly string[]): boolean =>
    names.some((name) => path === name || path.startsWith(`${name}/`));
  const excluded = files.filter((name) => name.startsWith("!")).map((name) => name.slice(1));
  return ALWAYS_PACKED.has(path) || (isIn(files) && !isIn(excluded));
}

for (const file of [...PACKED_PAGES, ...OTHER_PAGES]) {
  test(`every file and every heading that ${file} links to exists`, (t) => {
    t.true(existsSync(join(root, file)));
    for (const { target, heading } of linksIn(file)) {
      t.true(existsSync(join(root, target)), target);
      if (heading === undefined || !target.endsWith(".md")) continue;
      t.true(anchorsIn(target).includes(heading), `${target}#${heading}`);
    }
  });
}

for (const file of PACKED_PAGES) {
  test(`every file that ${file} links to is in the package`, (t) => {
    t.true(isPacked(file));
    for (const { target } of linksIn(file)) t.true(isPacked(target), target);
  });
}

test("every page of the docs is linked from the README", (t) => {
  const linked = new Set(linksIn("README.md").map(({ target }) => target));
  for (const file of pagesIn("docs")) t.true(linked.has(file), file);
});

test("every page of the docs that a message or a comment names exists", (t) => {
  for (const folder of ["runtime", "transformer", "test", "bench", "build", "examples"]) {
    const names = readdirSync(join(root, folder), { recursive: true, encoding: "utf8" }).filter((name) =>
      /^(?!.*node_modules).*\.[cm]?[jt]s$/.test(name),
    );
    for (const name of names) {
      const named = page(join(folder, name)).matchAll(/(?<![\w/.])docs\/[\w/-]+\.md(?:#([\w-]+))?/g);
      for (const [path, heading] of named) {
        const target = path.replace(/#.*/, "");
        t.true(existsSync(join(root, target)), `${folder}/${name}: ${path}`);
        if (heading !== undefined) t.true(anchorsIn(target).includes(heading), `${folder}/${name}: ${path}`);
      }
    }
  }
});
