import type { ExecutionContext } from "ava";
import type { Outcome } from "./outcome";
import { KINDS } from "./weather";

const ENOUGH_SEEDS = 1_000;

/** A process is sure of more than the store has granted to it. */
export const WRONG_BELIEF =
  /believes it holds .*, and (nobody holds it|it is reserved|it holds it for|\S+ holds it)/;

/**
 * Passes if the simulation finds a fault that the test has planted, by the invariant for it.
 *
 * @param simulate simulates the world of a seed
 * @param weather the kind of weather, or "any"
 * @param what the problem that it must report
 * @param seeds it must find the fault within these seeds
 */
export async function findsIn(
  simulate: (seed: number) => Promise<Outcome>,
  t: ExecutionContext,
  weather: string,
  what: RegExp,
  seeds = ENOUGH_SEEDS,
): Promise<void> {
  t.timeout(300_000);
  const others: string[] = [];
  const [first, step] = weather === "any" ? [0, 1] : [KINDS.indexOf(weather), KINDS.length];
  for (let seed = first; seed < seeds; seed += step) {
    const { problems } = await simulate(seed);
    const found = problems.find((problem) => what.test(problem));
    if (found !== undefined) {
      t.log(`seed ${seed}: ${found}`);
      t.pass();
      return;
    }
    others.push(...problems);
  }
  t.fail(`The fault was not found. Other problems: ${others.slice(0, 3).join("; ") || "nothing"}`);
}

/** Plants a fault for the time of the test. No other test runs the simulation meanwhile. */
export async function withFault<T extends object, Name extends keyof T>(
  target: T,
  name: Name,
  fault: (original: T[Name]) => T[Name],
  check: () => Promise<void>,
): Promise<void> {
  const original = target[name];
  target[name] = fault(original);
  try {
    await check();
  } finally {
    target[name] = original;
  }
}
