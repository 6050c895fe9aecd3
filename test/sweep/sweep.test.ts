import { mkdtemp, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "ava";
import { coverOf, setupsOf, sizeOfProduct, sweepOf } from "./cover";
import { faultIn, outcomeOf } from "./judge";
import { limitOf } from "./limits";
import { RESULT } from "./program";
import { excludedBy } from "./rules";
import { runSetup, type Defect, type Result } from "./run-setup";
import { DIMENSIONS, nameOf, setupNamed, type Setup } from "./setup";

// The judge and the generator of `npm run proof -- sweep`.

let root = "";
test.before("create a directory", async () => {
  root = await realpath(await mkdtemp(join(tmpdir(), "sweep-")));
});
test.after.always("remove the directory", () => rm(root, { recursive: true, force: true }));

function resultOf(name: string, defect?: Defect): Promise<Result> {
  return runSetup(root, setupNamed(name), defect);
}

test.serial(
  "a setup with the plugin runs under its locks, and the same setup without it does not run",
  async (t) => {
    const rest = "key-changed/imported/method/ts/minified";
    t.like(await resultOf(`esbuild/first/${rest}`), { outcome: "locked", fault: undefined });
    t.like(await resultOf(`esbuild/forgotten/${rest}`), { outcome: "refused", at: "run", fault: undefined });
  },
);

test.serial("a plugin that weaves nothing is reported as unlocked in each layout", async (t) => {
  for (const layout of ["entry", "imported", "barrel", "dynamic", "linked-source"]) {
    for (const host of ["esbuild", "rolldown"]) {
      const { outcome, fault } = await resultOf(
        `${host}/first/cold/${layout}/object/mts/plain`,
        "weaves nothing",
      );
      t.is(outcome, "free", fault);
      t.is(fault, "the program ran UNLOCKED");
    }
  }
});

test.serial("a build after a tag is removed contains no lock", async (t) => {
  t.like(await resultOf("esbuild/first/tag-removed/barrel/arrow/tsx/plain"), {
    outcome: "free",
    fault: undefined,
  });
});

const printed = (most: number, results = ["a"]): string =>
  `${RESULT}${JSON.stringify({ results, noted: [], most })}\n`;
const CONTROL = '[["a"],[]]';

for (const [what, code, output, expected, kind] of [
  ["an unlocked program in a setup that may fail", 0, printed(2), "safe", "unlocked"],
  ["an unlocked program that must be locked", 0, printed(2), "locked", "unlocked"],
  ["a lock that remains after its tag is removed", 0, printed(1), "free", "stale lock"],
  ["a result that differs from the one without locks", 0, printed(1, ["b"]), "locked", "other results"],
  ["an error in a setup that must work", 1, "error LW1404: lost. Fix: keep it.", "locked", "refused"],
  ["an error without a fix", 1, "error LW1404: lost.", "safe", "no fix"],
  ["an error that is not from Lockweave", 1, "SyntaxError: unexpected token", "safe", "broken"],
  ["a program that prints nothing", 0, "", "safe", "broken"],
] as const) {
  test(`the judge reports ${what}`, (t) => {
    t.is(faultIn(outcomeOf(code, output), expected, CONTROL)?.kind, kind);
  });
}

for (const [what, code, output, expected] of [
  ["a locked program", 0, printed(1), "locked"],
  ["a locked program in a setup that may fail", 0, printed(1), "safe"],
  ["an error with a fix", 1, "LockNotWovenError: not woven.\n Fix: run init.", "safe"],
  ["an unlocked program without a tag", 0, printed(2), "free"],
] as const) {
  test(`the judge accepts ${what}`, (t) => {
    t.is(faultIn(outcomeOf(code, output), expected, CONTROL), undefined);
  });
}

test("a known limitation excuses only its own failure", (t) => {
  const setup = setupNamed("vite/first/cold/linked-unwoven/arrow/ts/no-comments");
  t.is(limitOf(setup, { kind: "unlocked", text: "" }), "a package without comments");
  t.is(limitOf(setup, { kind: "other results", text: "" }), undefined);
});

test("a full sweep has at least 400 setups, each once, covers all hosts, and follows the rules", (t) => {
  const setups = sweepOf("all", 1);
  const names = setups.map(nameOf);
  t.true(names.length >= 400);
  t.is(new Set(names).size, names.length);
  t.deepEqual([...new Set(setups.map(({ host }) => host))], [...DIMENSIONS.host]);
  t.deepEqual(
    setups.map(excludedBy).filter((rule) => rule !== undefined),
    [],
  );
  t.true(sizeOfProduct() > names.length);
  t.deepEqual(
    names.map((name) => nameOf(setupNamed(name))),
    names,
  );
});

test("the setups of a host cover each possible pair of values", (t) => {
  const pairsIn = (setups: readonly Setup[]): Set<string> =>
    new Set(
      setups.flatMap((setup) => {
        const values = Object.entries(setup).map(([dimension, value]) => `${dimension}=${value}`);
        return values.flatMap((one, index) => values.slice(index + 1).map((other) => `${one} ${other}`));
      }),
    );
  t.deepEqual([...pairsIn(coverOf("node", 3))].toSorted(), [...pairsIn(setupsOf("node"))].toSorted());
});

test("the same seed gives the same setups, and another seed gives others", (t) => {
  const names = (seed: number): string => coverOf("esbuild", seed).map(nameOf).join();
  t.is(names(7), names(7));
  t.not(names(7), names(8));
});
