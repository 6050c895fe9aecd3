import { rmSync, utimesSync, watch, writeFileSync } from "node:fs";
import { once } from "node:events";
import { mkdtemp, realpath, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as timer } from "node:timers/promises";
import { type ExecutionContext } from "ava";
import { watchSources, type Run } from "../../transformer/cli/watch";
import { makeProject, PACKAGE, PLUGIN, tsconfig, type Files } from "../hosts/project";
import { Watch } from "../hosts/watch";
import { deferred } from "../support/deferred";
import { inMatrixSerially } from "../support/suites";

// When `check --watch` checks again, and what it prints. The tests run serially because they share one stdout.

/** Longer than the watcher's delay after a change, so that a timer of the watcher has fired before this one. */
const AFTER_SETTLING_MS = 60;

interface Watched {
  readonly path: (file: string) => string;
  /** Returns the output since the last call. */
  readonly said: () => string;
  /** The number of checks so far. */
  readonly runs: () => number;
  /** Resolves after that many checks. */
  readonly ran: (count: number) => Promise<void>;
}

/** @param look the check, with its number from 1. The watch ends if it returns no sources. */
async function watching(
  t: ExecutionContext,
  look: (run: number, path: (file: string) => string) => Run,
  files: Files = {},
): Promise<Watched> {
  const dir = await realpath(await mkdtemp(join(tmpdir(), "watched-")));
  const path = (file: string): string => join(dir, file);
  for (const [file, text] of Object.entries(files)) {
    writeFileSync(path(file), text);
    // The watcher would check a file again that is as new as the check itself.
    utimesSync(path(file), new Date(0), new Date(0));
  }
  const { write } = process.stdout;
  const printed: string[] = [];
  process.stdout.write = (text: string | Uint8Array): boolean => printed.push(String(text)) > 0;
  let isOver = false;
  let runs = 0;
  let next = deferred();
  const runOnce = (): Run => {
    const run = isOver ? { errors: 0, sources: [] } : look(++runs, path);
    queueMicrotask(() => {
      next.resolve();
      next = deferred();
    });
    return run;
  };
  const ran = async (count: number): Promise<void> => {
    // oxlint-disable-next-line no-unmodified-loop-condition -- Each run counts.
    while (runs < count) await next.promise;
  };
  t.teardown(async () => {
    isOver = true;
    const ended = next.promise;
    const isWatching = process.getActiveResourcesInfo().includes("FSEventWrap");
    for (const file of Object.keys(files)) writeFileSync(path(file), "");
    if (isWatching) await ended;
    process.stdout.write = write;
    await rm(dir, { recursive: true });
  });
  watchSources(runOnce);
  return { path, said: () => printed.splice(0).join(""), runs: () => runs, ran };
}

/** Changes a file, and waits until each earlier watcher has received the event and reacted. */
async function makeChange(file: string, dir: string, change: () => void): Promise<void> {
  const watcher = watch(dir);
  change();
  for (;;) {
    const [, name] = (await once(watcher, "change")) as [string, string];
    if (name === file) break;
  }
  watcher.close();
  await timer(AFTER_SETTLING_MS);
}

const TIME = String.raw`\d{1,2}:\d\d:\d\d [AP]M`;

inMatrixSerially(
  "check --watch prints its start, its result, and its restart in the compiler's words",
  async (t) => {
    const errors = [0, 1, 2];
    const { path, said, ran } = await watching(
      t,
      (run, at) => ({ errors: errors[run - 1] ?? 0, sources: [at("a.ts")] }),
      { "a.ts": "" },
    );
    t.regex(
      said(),
      new RegExp(
        `^${TIME} - Starting compilation in watch mode\\.\\.\\.\n\n${TIME} - Found 0 errors\\. Watching for file changes\\.\n\n$`,
      ),
    );
    for (const found of ["1 error", "2 errors"]) {
      writeFileSync(path("a.ts"), found);
      await ran(found === "1 error" ? 2 : 3);
      t.regex(
        said(),
        new RegExp(
          `^${TIME} - File change detected\\. Starting incremental compilation\\.\\.\\.\n\n${TIME} - Found ${found}\\. Watching for file changes\\.\n\n$`,
        ),
      );
    }
  },
);

for (const [what, file, looks] of [
  ["a watched source with any name", "tsconfig.json", true],
  ["a new file that may be a source", "new.ts", true],
  ["a new module with types and markup", "new.mtsx", true],
  ["a new CommonJS module", "new.cts", true],
  ["declarations that the build writes", "a.d.ts", false],
  ["JavaScript that the build writes", "a.js", false],
  ["a file whose name only begins like a source", "a.ts.map", false],
] as const) {
  inMatrixSerially(`a change to ${what} ${looks ? "starts" : "does not start"} another check`, async (t) => {
    const { path, runs, ran } = await watching(
      t,
      (_, at) => ({ errors: 0, sources: [at("a.ts"), at("tsconfig.json")] }),
      { "a.ts": "", "tsconfig.json": "" },
    );
    await makeChange(file, path("."), () => writeFileSync(path(file), "{}"));
    if (looks) await ran(2);
    t.is(runs(), looks ? 2 : 1);
  });
}

inMatrixSerially("two files that are saved together start one check", async (t) => {
  const { path, runs } = await watching(t, (_, at) => ({ errors: 0, sources: [at("a.ts"), at("b.ts")] }), {
    "a.ts": "",
    "b.ts": "",
  });
  await makeChange("b.ts", path("."), () => {
    for (const file of ["a.ts", "b.ts"]) writeFileSync(path(file), "1");
  });
  t.is(runs(), 2);
});

inMatrixSerially(
  "a source that changes during the first check, before the watch begins, is checked again",
  async (t) => {
    const later = new Date(Date.now() + 3_600_000);
    const { runs, ran } = await watching(
      t,
      (run, at) => {
        utimesSync(at("b.ts"), later, run === 1 ? later : new Date(0));
        return { errors: 0, sources: [at("a.ts"), at("b.ts")] };
      },
      { "a.ts": "", "b.ts": "" },
    );
    t.is(runs(), 1);
    await ran(2);
    await timer(AFTER_SETTLING_MS);
    t.pass();
  },
);

inMatrixSerially("a missing source starts another check when it appears", async (t) => {
  const { path, runs } = await watching(
    t,
    (_, at) => {
      rmSync(at("a.ts"), { force: true });
      return { errors: 1, sources: [at("a.ts")] };
    },
    { "a.ts": "" },
  );
  await timer(AFTER_SETTLING_MS);
  t.is(runs(), 1);
  await makeChange("a.ts", path("."), () => writeFileSync(path("a.ts"), ""));
  t.true(runs() > 1);
});

inMatrixSerially("a directory has one watcher, and only as long as it has sources", async (t) => {
  const watched = (): number =>
    process.getActiveResourcesInfo().filter((resource) => resource === "FSEventWrap").length;
  const other = await realpath(await mkdtemp(join(tmpdir(), "watched-")));
  t.teardown(() => rm(other, { recursive: true }));
  const { path, ran } = await watching(
    t,
    (run, at) => ({ errors: 0, sources: run < 3 ? [at("a.ts"), join(other, "b.ts")] : [at("a.ts")] }),
    { "a.ts": "" },
  );
  t.is(watched(), 2);
  writeFileSync(path("a.ts"), "1");
  await ran(2);
  t.is(watched(), 2);
  writeFileSync(path("a.ts"), "2");
  await ran(3);
  await timer(0);
  t.is(watched(), 1);
});

inMatrixSerially("a directory that has a source again is watched again", async (t) => {
  const other = await realpath(await mkdtemp(join(tmpdir(), "watched-")));
  t.teardown(() => rm(other, { recursive: true }));
  const { path, ran } = await watching(
    t,
    (run, at) => ({ errors: 0, sources: run === 2 ? [at("a.ts")] : [at("a.ts"), join(other, "b.ts")] }),
    { "a.ts": "" },
  );
  for (const run of [2, 3]) {
    writeFileSync(path("a.ts"), String(run));
    await ran(run);
  }
  await timer(AFTER_SETTLING_MS);
  writeFileSync(join(other, "b.ts"), "");
  await ran(4);
  t.pass();
});

// ---- what `check --watch` watches --------------------------------------------------------------------------

const CHECK = [join(PACKAGE, "dist/transformer/cli/main.js"), "check", "--watch"];

inMatrixSerially("check --watch watches all former sources while the tsconfig.json is broken", async (t) => {
  const project = await makeProject({
    "tsconfig.json": '{ "extends": "./config/base.json", "include": ["src"] }',
    "config/base.json": tsconfig({}, {}),
    "src/a.ts": "export {};\n",
  });
  const checking = new Watch(project, CHECK);
  t.teardown(() => checking.stop());
  t.regex(await checking.build(), /Found 0 errors\./);
  await project.write({ "tsconfig.json": "{" });
  t.regex(await checking.build(), /\nerror TS901401: .*tsconfig\.json.*\n.*Found 1 error\./);
  await project.write({ "src/a.ts": "export const a = 1;\n" });
  t.regex(await checking.build(), /File change detected.*\n\nerror TS901401: /);
});

for (const [what, args, file, text] of [
  ["that is broken from the start", [], "tsconfig.json", "{"],
  ["that -p names and that does not exist", ["-p", "config/build.json"], "config/build.json", undefined],
] as const) {
  inMatrixSerially(`check --watch waits for a tsconfig ${what}`, async (t) => {
    const project = await makeProject({
      "config/other.json": "{}",
      "src/a.ts": "export {};\n",
      ...(text !== undefined && { [file]: text }),
    });
    const checking = new Watch(project, [...CHECK, ...args]);
    t.teardown(() => checking.stop());
    t.regex(await checking.build(), /\nerror TS901401: .*\n.*Found 1 error\./);
    await project.write({ [file]: tsconfig({ rootDir: undefined }, { files: [project.path("src/a.ts")] }) });
    let said = await checking.build();
    while (said.includes("TS901401")) said = await checking.build(); // The watcher may see a partly written file.
    t.regex(said, /Found 0 errors\./);
  });
}

inMatrixSerially(
  "check --watch reports an error in the plugin entry at the start of tsconfig.json",
  async (t) => {
    const plugins = [{ ...PLUGIN, defaults: { lockTme: 1 } }];
    const project = await makeProject(
      { "src/a.ts": "/** @redisLock businessFlag=a */\nexport async function a() {}\n" },
      { plugins },
    );
    const checking = new Watch(project, CHECK);
    t.teardown(() => checking.stop());
    t.regex(
      await checking.build(),
      /\ntsconfig\.json\(1,1\): error TS901401: LW1401: .* Did you mean `lockTime`\?\n.*Found 1 error\./,
    );
  },
);

inMatrixSerially(
  "check --watch reports tags in the TypeScript of a linked package at the import",
  async (t) => {
    const project = await makeProject({
      "packages/shop/package.json": '{ "name": "shop", "type": "module", "exports": "./index.ts" }',
      "packages/shop/index.ts": "/** @redisLock businessFlag=pay */\nexport async function pay() {}\n",
      "src/main.ts": 'export { pay } from "shop";\n',
    });
    await symlink(project.path("packages/shop"), project.path("node_modules/shop"));
    const checking = new Watch(project, CHECK);
    t.teardown(() => checking.stop());
    t.regex(
      await checking.build(),
      /\nsrc\/main\.ts\(1,21\): error TS901406: LW1406: This imports `pay` .*\n.*Found 1 error\./,
    );
  },
);
