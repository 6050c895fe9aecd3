import { rmSync, utimesSync, watch, writeFileSync } from "node:fs";
import { once } from "node:events";
import { mkdtemp, realpath, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as timer } from "node:timers/promises";
import test, { type ExecutionContext } from "ava";
import { watchSources, type Run } from "../../transformer/cli/watch";
import { makeProject, PACKAGE, PLUGIN, tsconfig, type Files } from "../hosts/project";
import { Watch } from "../hosts/watch";
import { deferred } from "../support/deferred";

// When a check that watches looks again, and what it says. One after the other: there is one stdout.

/** Timers ring in their order: one that was set before this, to let an editor finish, has rung. */
const AFTER_SETTLING_MS = 60;

interface Watched {
  readonly path: (file: string) => string;
  /** What was said since it was asked last. */
  readonly said: () => string;
  /** How often the sources have been looked at. */
  readonly runs: () => number;
  /** Resolves when they have been looked at so often. */
  readonly ran: (count: number) => Promise<void>;
}

/** @param look told which run it is, from 1; without sources, nothing is watched any more */
async function watching(
  t: ExecutionContext,
  look: (run: number, path: (file: string) => string) => Run,
  files: Files = {},
): Promise<Watched> {
  const dir = await realpath(await mkdtemp(join(tmpdir(), "watched-")));
  const path = (file: string): string => join(dir, file);
  for (const [file, text] of Object.entries(files)) {
    writeFileSync(path(file), text);
    // Long ago: a file of this very millisecond might have changed since it was looked at, and would be looked at again.
    utimesSync(path(file), new Date(0), new Date(0));
  }
  const { write } = process.stdout;
  const told: string[] = [];
  process.stdout.write = (text: string | Uint8Array): boolean => told.push(String(text)) > 0;
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
  return { path, said: () => told.splice(0).join(""), runs: () => runs, ran };
}

/** Changes a file, and waits until whoever has watched before has been told, and has answered. */
async function seen(file: string, dir: string, change: () => void): Promise<void> {
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

test.serial(
  "it says in the compiler's own words that it begins, that it is done, and that it begins again",
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
  ["a source with any name", "tsconfig.json", true],
  ["a new file that may be a source", "new.ts", true],
  ["a new module with types and markup", "new.mtsx", true],
  ["a new CommonJS module", "new.cts", true],
  ["declarations that the build writes", "a.d.ts", false],
  ["JavaScript that the build writes", "a.js", false],
  ["what only begins like a source", "a.ts.map", false],
] as const) {
  test.serial(`a change of ${what} makes it look ${looks ? "again" : "no more"}`, async (t) => {
    const { path, runs, ran } = await watching(
      t,
      (_, at) => ({ errors: 0, sources: [at("a.ts"), at("tsconfig.json")] }),
      { "a.ts": "", "tsconfig.json": "" },
    );
    await seen(file, path("."), () => writeFileSync(path(file), "{}"));
    if (looks) await ran(2);
    t.is(runs(), looks ? 2 : 1);
  });
}

test.serial("files that are saved together are looked at once", async (t) => {
  const { path, runs } = await watching(t, (_, at) => ({ errors: 0, sources: [at("a.ts"), at("b.ts")] }), {
    "a.ts": "",
    "b.ts": "",
  });
  await seen("b.ts", path("."), () => {
    for (const file of ["a.ts", "b.ts"]) writeFileSync(path(file), "1");
  });
  t.is(runs(), 2);
});

test.serial(
  "a source that changes while it is looked at is looked at again, though nobody watched yet",
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

test.serial("a source that is gone is waited for", async (t) => {
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
  await seen("a.ts", path("."), () => writeFileSync(path("a.ts"), ""));
  t.true(runs() > 1);
});

test.serial("a directory is watched once, and no longer than it has sources", async (t) => {
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

test.serial("a directory that has a source again is watched again", async (t) => {
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

// ---- what a check that watches looks at --------------------------------------------------------------------

const CHECK = [join(PACKAGE, "dist/transformer/cli/main.js"), "check", "--watch"];

test.serial("while a configuration is broken, all that it was made of is watched", async (t) => {
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
  ["that is named, and is not there", ["-p", "config/build.json"], "config/build.json", undefined],
] as const) {
  test.serial(`a configuration ${what} is waited for`, async (t) => {
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
    while (said.includes("TS901401")) said = await checking.build(); // It may be seen before all of it is written.
    t.regex(said, /Found 0 errors\./);
  });
}

test.serial("what is wrong with the plugin's entry stands at the beginning of tsconfig.json", async (t) => {
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
});

test.serial("tags in the TypeScript that a linked package hands out are told at the import", async (t) => {
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
});
