import { live } from "./live";
import type { Choice, Plan, Story } from "./story";
import type { Tamper } from "../tampering";

/** The limits of an exploration. */
export interface Reach {
  /** The largest number of deviations from the plain order in a schedule. */
  readonly deviations: number;
  /**
   * The number of schedules after which to stop, but not before all with one deviation have run. Those with more deviations
   * are spread over all that exist.
   */
  readonly mostSchedules?: number;
  /** Called before each schedule. Returns whether to stop. */
  readonly isEnough?: () => boolean;
  /** The number of schedules with problems after which to stop. */
  readonly mostFailures?: number;
  readonly tamper?: Tamper;
  /** Whether to record each schedule in the steps of the model in `lock.pml`. */
  readonly isModeled?: boolean;
  /** Called with each schedule that has run. */
  readonly onSeen?: (story: Story, choices: readonly Choice[]) => void;
}

export interface Failure {
  readonly plan: string;
  readonly choices: readonly Choice[];
  readonly problems: readonly string[];
}

/** The results for one plan. */
export interface Seen {
  readonly plan: string;
  schedules: number;
  /** The schedules that differ in what a process or the server sees, or in its order. */
  readonly distinct: Set<number>;
  /** The number of steps in the longest schedule. */
  mostSteps: number;
  /** All schedules with up to this many deviations have run. */
  complete: number;
  readonly failures: Failure[];
}

/**
 * Runs all schedules of a small world with up to the given number of deviations from the plain order. It starts with the
 * fewest deviations, so that the first failure is one of the simplest.
 */
export async function explore(plan: Plan, reach: Reach): Promise<Seen> {
  return await new Exploration(plan, reach).run();
}

/** A schedule whose own deviations may be followed by more. */
interface Branch {
  readonly choices: readonly Choice[];
  readonly options: readonly number[];
}

class Exploration {
  readonly #plan: Plan;
  readonly #reach: Reach;
  readonly #seen: Seen;

  constructor(plan: Plan, reach: Reach) {
    this.#plan = plan;
    this.#reach = reach;
    this.#seen = {
      plan: plan.name,
      schedules: 0,
      distinct: new Set(),
      mostSteps: 0,
      complete: -1,
      failures: [],
    };
  }

  async run(): Promise<Seen> {
    let branches: Branch[] = [];
    const { deviations } = this.#reach;
    for (let depth = 0; depth <= deviations && !this.#isOver(depth); depth += 1) {
      const expanded = new Set<number>();
      const grown: Branch[] = [];
      const choices = depth === 0 ? [[]] : spread(branches);
      for (const chosen of choices) {
        if (this.#isOver(depth)) return this.#seen;
        const story = await this.#live(chosen, depth < deviations);
        // Schedules with the same fingerprint have the same continuations.
        if (depth === deviations || story.problems.length > 0 || expanded.has(story.fingerprint)) continue;
        expanded.add(story.fingerprint);
        grown.push({ choices: chosen, options: story.options });
      }
      branches = grown;
      this.#seen.complete = depth;
    }
    return this.#seen;
  }

  #isOver(depth: number): boolean {
    const { mostFailures = 1, mostSchedules = Infinity, isEnough = () => false } = this.#reach;
    const hasSeenMost = depth > 1 && this.#seen.schedules >= mostSchedules;
    return hasSeenMost || this.#seen.failures.length >= mostFailures || isEnough();
  }

  async #live(choices: readonly Choice[], countsOptions: boolean): Promise<Story> {
    const { tamper = (store) => store, isModeled = false, onSeen } = this.#reach;
    const story = await live(this.#plan, choices, { countsOptions, tamper, isModeled });
    const seen = this.#seen;
    seen.schedules += 1;
    seen.distinct.add(story.orderFingerprint);
    seen.mostSteps = Math.max(seen.mostSteps, story.steps);
    const { problems } = story;
    if (problems.length > 0) seen.failures.push({ plan: this.#plan.name, choices, problems });
    onSeen?.(story, choices);
    return story;
  }
}

/**
 * Yields each continuation of the branches once. It strides over all of them, so that an early stop has seen some of each
 * kind.
 */
function* spread(branches: readonly Branch[]): Iterable<readonly Choice[]> {
  const starts: number[] = [];
  let count = 0;
  for (const { options } of branches) {
    starts.push(count);
    for (const most of options) count += most ?? 0;
  }
  const stride = coprime(Math.max(Math.floor(count * 0.618), 1), count);
  for (let n = 0, at = 0; n < count; n += 1, at = (at + stride) % count) {
    const index = lastAtMost(starts, at);
    const branch = branches[index];
    if (branch === undefined) return;
    yield [...branch.choices, choiceAt(branch.options, at - (starts[index] ?? 0))];
  }
}

function choiceAt(options: readonly number[], nth: number): Choice {
  let left = nth;
  for (const [step, most = 0] of options.entries()) {
    if (left < most) return { step, option: left };
    left -= most;
  }
  throw new Error(`Expected more than ${nth} options`);
}

/** Returns the index of the last number that is not greater than the value. */
function lastAtMost(sorted: readonly number[], value: number): number {
  let [low, high] = [0, sorted.length - 1];
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if ((sorted[middle] ?? Infinity) <= value) low = middle;
    else high = middle - 1;
  }
  return low;
}

/** Returns the first number from `from` on that has no divisor in common with `count`. */
function coprime(from: number, count: number): number {
  let one = from;
  while (greatestDivisor(one, count) > 1) one += 1;
  return one;
}

function greatestDivisor(one: number, other: number): number {
  return other === 0 ? one : greatestDivisor(other, one % other);
}
