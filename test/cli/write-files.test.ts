import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "ava";
import { writeFiles } from "../../transformer/cli/workspace/write-files";

// `init` and `eject` write files safely.

let dir: string;

test.beforeEach(() => {
  dir = mkdtempSync(join(realpathSync(tmpdir()), "write-files-"));
  mkdirSync(join(dir, "project"));
});
test.afterEach.always(() => rmSync(dir, { recursive: true }));

const path = (name: string): string => join(dir, "project", name);

test.serial("a write replaces the whole file, and keeps its mode", (t) => {
  writeFileSync(path("a"), "before");
  for (const mode of [0o600, 0o755, 0o444]) {
    chmodSync(path("a"), mode);
    const { ino } = statSync(path("a"));
    writeFiles(join(dir, "project"), [
      { path: "a", before: readFileSync(path("a"), "utf8"), after: `${mode}` },
    ]);
    t.is(statSync(path("a")).mode & 0o7777, mode);
    t.not(statSync(path("a")).ino, ino); // A reader that has the old file open can read it to its end.
    t.is(readFileSync(path("a"), "utf8"), `${mode}`);
  }
  t.deepEqual(readdirSync(join(dir, "project")), ["a"]);
});

test.serial("a write creates the directory of a new file", (t) => {
  writeFiles(join(dir, "project"), [{ path: "b/c", before: undefined, after: "new" }]);
  t.is(readFileSync(path("b/c"), "utf8"), "new");
});

test.serial("a write keeps the byte order mark", (t) => {
  writeFileSync(path("a"), "\uFEFFbefore");
  writeFiles(join(dir, "project"), [{ path: "a", before: "before", after: "after" }]);
  t.is(readFileSync(path("a"), "utf8"), "\uFEFFafter");
});

test.serial("a write follows a symbolic link within the project, and keeps the link", (t) => {
  writeFileSync(path("a"), "before");
  symlinkSync("a", path("link"));
  writeFiles(join(dir, "project"), [{ path: "link", before: "before", after: "after" }]);
  t.true(lstatSync(path("link")).isSymbolicLink());
  t.is(readFileSync(path("a"), "utf8"), "after");
});

test.serial("a symbolic link out of the project is an error, and no file is written", (t) => {
  writeFileSync(join(dir, "outside"), "before");
  mkdirSync(join(dir, "others"));
  writeFileSync(path("a"), "before");
  symlinkSync("../outside", path("file"));
  symlinkSync("../others", path("directory"));
  symlinkSync("../nothing", path("dangling"));
  for (const [name, before] of [
    ["file", "before"],
    ["directory/new", undefined],
    ["dangling", undefined],
  ] as const) {
    const changes = [
      { path: "a", before: "before", after: "after" },
      { path: name, before, after: "after" },
    ];
    t.throws(() => writeFiles(join(dir, "project"), changes), { message: /symbolic link/ }, name);
    t.is(readFileSync(path("a"), "utf8"), "before");
  }
  t.is(readFileSync(join(dir, "outside"), "utf8"), "before");
  t.deepEqual(readdirSync(join(dir, "others")), []);
  t.false(existsSync(join(dir, "nothing")));
  t.deepEqual(readdirSync(join(dir, "project")).toSorted(), ["a", "dangling", "directory", "file"]);
});

test.serial("a project may be opened through a symbolic link, and have sources next to it", (t) => {
  writeFileSync(path("a"), "before");
  writeFileSync(join(dir, "beside"), "before");
  symlinkSync("project", join(dir, "link"));
  writeFiles(join(dir, "link"), [
    { path: "a", before: "before", after: "after" },
    { path: join(dir, "link/a2"), before: undefined, after: "after" },
    { path: join(dir, "beside"), before: "before", after: "after" },
  ]);
  t.is(readFileSync(path("a"), "utf8") + readFileSync(path("a2"), "utf8"), "afterafter");
  t.is(readFileSync(join(dir, "beside"), "utf8"), "after");
});

test.serial("no file is written if one has changed since it was read", (t) => {
  writeFileSync(path("a"), "edited");
  writeFileSync(path("b"), "before");
  const changes = [
    { path: "b", before: "before", after: "after" },
    { path: "a", before: "before", after: "after" },
  ];
  t.throws(() => writeFiles(join(dir, "project"), changes), { message: /has changed in the meantime/ });
  t.throws(() => writeFiles(join(dir, "project"), [{ path: "a", before: undefined, after: "" }]), {
    message: /has changed in the meantime/,
  });
  t.is(readFileSync(path("a"), "utf8") + readFileSync(path("b"), "utf8"), "editedbefore");
  t.deepEqual(readdirSync(join(dir, "project")).toSorted(), ["a", "b"]);
});

test.serial("a file that cannot be renamed leaves the files before it unchanged", (t) => {
  writeFileSync(path("a"), "\uFEFFbefore", { mode: 0o600 });
  const changes = [
    { path: "a", before: "before", after: "after" },
    { path: "b", before: undefined, after: "after" },
    { path: "c", before: undefined, after: "after" }, // A file cannot replace the directory of the next one.
    { path: "c/d", before: undefined, after: "after" },
  ];
  t.throws(() => writeFiles(join(dir, "project"), changes), {
    message: /^The files cannot be written: (?!.*changed already)/,
  });
  t.is(readFileSync(path("a"), "utf8"), "\uFEFFbefore");
  t.is(statSync(path("a")).mode & 0o7777, 0o600);
  t.deepEqual(readdirSync(join(dir, "project")).toSorted(), ["a", "c"]);
});

test.serial("no file is written if one of them cannot be written", (t) => {
  writeFileSync(path("a"), "before");
  writeFileSync(path("no-directory"), "");
  const changes = [
    { path: "a", before: "before", after: "after" },
    { path: "no-directory/b", before: undefined, after: "after" },
  ];
  t.throws(() => writeFiles(join(dir, "project"), changes), { message: /^The files cannot be written: / });
  t.is(readFileSync(path("a"), "utf8"), "before");
  t.deepEqual(readdirSync(join(dir, "project")).toSorted(), ["a", "no-directory"]);
});
