import { runInThisContext } from "node:vm";
import ts from "typescript";
import * as runtime from "../support/whole-runtime";
import { weave } from "../../transformer/weave/weave";
import { randomProgram, type RandomProgram } from "./random-program";
import { observed } from "../support/observed-store";

/** A difference between the run with the lock and the run without it. */
export interface Difference {
  readonly seed: number;
  readonly what: string;
  readonly source: string;
}

export type Verdict = "same" | Difference;

/** Runs the program of the seed unchanged and woven, and compares both runs. */
export async function compare(seed: number): Promise<Verdict> {
  const program = randomProgram(seed);
  const { source } = program;
  const differs = (what: string): Difference => ({ seed, what, source });
  const woven = weave("a.ts", source, { ts, module: "esm" });
  if (woven === undefined) return differs("nothing was woven");
  const [problem] = woven.diagnostics;
  if (problem !== undefined) return differs(`${problem.code}: ${problem.message}`);
  const [plainly, locked] = load(source, woven.code);
  const expected = await run(program, plainly);
  const found = await run(program, locked);
  const plain = found.events.filter((event) => event !== ACQUIRE && event !== RELEASE);
  if (JSON.stringify(plain) !== JSON.stringify(expected.events)) {
    return differs(
      `expected\n${expected.events.join("\n")}\n\nfound\n${found.events.join("\n")}\n\n${woven.code}`,
    );
  }
  // Both have the same number of outcomes, because each outcome is also an event.
  if (found.outcomes.some((outcome, index) => !isSame(outcome, expected.outcomes[index]))) {
    return differs("another result");
  }
  const wrong = whatIsWrong(found.events);
  return wrong === undefined ? "same" : differs(`${wrong}\n${found.events.join("\n")}\n\n${woven.code}`);
}

const ACQUIRE = "acquire";
const RELEASE = "release";
const DEFAULT = /^"?default/;

/** Checks that the lock is acquired once before all effects except those of default parameters, and released after them. */
function whatIsWrong(events: readonly string[]): string | undefined {
  const count = (what: string): number => events.filter((event) => event === what).length;
  if (count(ACQUIRE) !== count(RELEASE) || count(ACQUIRE) > 1)
    return "the lock was not acquired and released exactly once";
  const inside = events.filter((event) => !DEFAULT.test(event) && !event.startsWith("step"));
  if (inside.length === 0 || count(ACQUIRE) === 0) return undefined;
  if (inside[0] !== ACQUIRE) return "an effect before the lock";
  return inside.at(-1) === RELEASE ? undefined : "an effect after the lock";
}

interface Run {
  readonly events: string[];
  readonly outcomes: Outcome[];
}

type Outcome = { readonly value: unknown } | { readonly error: unknown };

/** The events of the current run. */
let current: string[] = [];

/** Configures a store that records when the lock of the current run is acquired and released. */
export function configureObserved(): void {
  const store = observed(runtime.memoryStore(), {
    onAcquired: () => void current.push(ACQUIRE),
    onRelease: () => void current.push(RELEASE),
  });
  runtime.configure({ store }, "woven");
}

async function run({ args, isGenerator, steps }: RandomProgram, module: Module): Promise<Run> {
  const events: string[] = [];
  current = events;
  const subject = module(makeWorld(events), runtime);
  const outcomes: Outcome[] = [];
  const note = async (made: () => unknown): Promise<void> => {
    const outcome: Outcome = await (async () => ({ value: await made() }))().catch((error: unknown) => ({
      error,
    }));
    outcomes.push(outcome);
    events.push(`step ${show("value" in outcome ? outcome.value : outcome.error)}`);
  };
  if (!isGenerator) await note(() => subject(...args));
  else {
    let stream: AsyncGenerator | undefined;
    await note(() => {
      stream = subject(...args) as AsyncGenerator;
    });
    for (const { call, value } of steps) await note(() => stream?.[call](value));
    // A generator with a `yield` in its `finally` does not end at the first return().
    for (let count = 0; count < 20 && !isDone(outcomes.at(-1)); count += 1)
      await note(() => stream?.return(undefined));
    for (let count = 0; count < 40 && !isDone(outcomes.at(-1)); count += 1) await note(() => stream?.next());
    await note(() => stream?.next());
  }
  return { events, outcomes };
}

/** Whether the generator is done. */
function isDone(outcome: Outcome | undefined): boolean {
  return (
    outcome !== undefined && "value" in outcome && (outcome.value as IteratorResult<unknown>)?.done === true
  );
}

type Subject = (...args: readonly unknown[]) => unknown;

/** A module as a function of its imports. It returns what the module exports. */
type Module = (world: object, runtime: object) => Subject;

/** Loads both in one script, because each script has a high fixed cost. */
function load(...codes: readonly [string, string]): [Module, Module] {
  const script = `"use strict"; [${codes.map(moduleOf).join(",\n")}];`;
  return runInThisContext(knownToNode(script)) as [Module, Module];
}

function moduleOf(code: string): string {
  const body = code
    .replace('import { world } from "world";', "")
    .replace(/import \* as (lockweave\w*) from "lockweave\/runtime";/, "const $1 = runtime;")
    .replaceAll(/export (?=const|async)/g, "");
  return `function (world, runtime) { ${body}\nreturn subject; }`;
}

const TARGET = { target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.None };

/** Compiles `using`, which Node 20 does not support. */
function knownToNode(script: string): string {
  return /\busing\b/.test(script)
    ? ts.transpileModule(script, { compilerOptions: TARGET }).outputText
    : script;
}

const ERRORS = [new Error("mine"), "text", null, new TypeError("mine too")];
const OBJECT = { tag: "object" };

/** Creates the functions that the program can call. They behave the same in each run. */
function makeWorld(events: string[]): object {
  let chances = 0;
  const rounds = new WeakMap<object, number>();
  let isLent = false;
  const resource = (what: number): object => ({
    [Symbol.dispose]() {
      events.push(`dispose ${what}`);
    },
    async [Symbol.asyncDispose]() {
      events.push(`begin to dispose ${what}`);
      await Promise.resolve();
      events.push(`disposed ${what}`);
    },
  });
  return {
    /** A generator that records when it is closed. */
    *cursor(what: number) {
      events.push(`open ${what}`);
      try {
        yield what;
        yield what + 1;
      } finally {
        events.push(`close ${what}`);
      }
    },
    /** An async generator that does work when it is closed. */
    async *stream(what: number) {
      events.push(`open stream ${what}`);
      try {
        yield what;
        yield Promise.resolve(what + 1);
      } finally {
        await Promise.resolve();
        events.push(`close stream ${what}`);
      }
    },
    /** Lends the only connection of a pool while the loop runs. */
    *borrow(what: number) {
      const isOurs = !isLent;
      isLent = true;
      events.push(`borrow ${what} ${isOurs}`);
      try {
        yield what;
      } finally {
        if (isOurs) isLent = false;
        events.push(`give back ${what}`);
      }
    },
    /** Lends the connection too, and returns it asynchronously. */
    async *lease(what: number) {
      const isOurs = !isLent;
      isLent = true;
      events.push(`lease ${what} ${isOurs}`);
      try {
        yield what;
      } finally {
        await Promise.resolve();
        if (isOurs) isLent = false;
        events.push(`return lease ${what}`);
      }
    },
    resource,
    *resources(what: number) {
      events.push(`open resources ${what}`);
      try {
        yield resource(what);
        yield resource(what + 1);
      } finally {
        events.push(`close resources ${what}`);
      }
    },
    query: async (what: number) => {
      events.push(`query ${what} ${isLent ? "waits for ever" : "runs"}`);
      await Promise.resolve();
      events.push(`queried ${what} ${isLent ? "waits for ever" : "runs"}`);
      return what;
    },
    /** An object whose getter does work. */
    account: (what: number) => ({
      get balance() {
        events.push(`get ${what}`);
        return (async () => {
          await Promise.resolve();
          events.push(`got ${what}`);
          return what;
        })();
      },
    }),
    object: OBJECT,
    errors: ERRORS,
    last: undefined,
    effect: (what: unknown, value?: unknown) => {
      events.push(`${show(what)} ${show(value)}`);
      return value ?? what;
    },
    work: async (what: number) => {
      events.push(`begin ${show(what)}`);
      for (let tick = 0; tick < what % 4; tick += 1) await Promise.resolve();
      events.push(`end ${show(what)}`);
      return what;
    },
    lazy: (what: number) => ({
      // oxlint-disable-next-line unicorn/no-thenable -- the work starts when it is awaited.
      then: (resolve: (value: unknown) => void) => {
        events.push(`begin lazy ${what}`);
        queueMicrotask(() => {
          events.push(`end lazy ${what}`);
          resolve(what);
        });
      },
    }),
    fail: async (index: number) => {
      events.push(`fail ${index}`);
      await Promise.resolve();
      events.push(`failed ${index}`);
      throw ERRORS[index];
    },
    boom: (index: number) => {
      events.push(`default boom ${index}`);
      throw ERRORS[index];
    },
    /** Returns true twice for each object, so that the end of a loop does not depend on its body. */
    again: (counted: object) => {
      const round = (rounds.get(counted) ?? 0) + 1;
      rounds.set(counted, round);
      events.push(`again ${round}`);
      return round < 3;
    },
    chance: (value: unknown) => {
      chances += 1;
      events.push(`chance ${show(value)}`);
      return chances % 3 === 0;
    },
  };
}

function show(value: unknown): string {
  if (typeof value === "function") return "function";
  if (typeof value !== "object" || value === null) return String(value);
  return value instanceof Error
    ? `${value.name}: ${value.message}`
    : `${value.constructor.name} ${JSON.stringify(value)}`;
}

/** Whether both outcomes are the same value or error, or look the same if each run creates them. */
function isSame(one: Outcome, other: Outcome | undefined): boolean {
  if (other === undefined) return false;
  if ("value" in one) return "value" in other && isSameValue(one.value, other.value);
  return "error" in other && (Object.is(one.error, other.error) || isSameValue(one.error, other.error));
}

function isSameValue(one: unknown, other: unknown): boolean {
  const isPlain = typeof one !== "object" && typeof one !== "function";
  const isOurs = ERRORS.includes(one as never) || one === OBJECT;
  return isPlain || isOurs ? Object.is(one, other) : show(one) === show(other);
}
