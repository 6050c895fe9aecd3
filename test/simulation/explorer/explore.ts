import { live } from "./live";
import type { Choice, Plan, Story } from "./story";
import type { Tamper } from "../tampering";

/** How far to look. */
export interface Reach {
  /** How many deviations from the plain order a schedule has at most. */
  readonly deviations: number;
  /**
   * After how many schedules to stop, but not before all was seen that has one deviation. Those with more that are seen lie
   * spread over all that there are.
   */
  readonly mostSchedules?: number;
  /** Asked before each schedule. */
  readonly isEnough?: () => boolean;
  /** After so many schedules that have a problem nobody looks further. */
  readonly mostFailures?: number;
  readonly tamper?: Tamper;
  /** Told each schedule that was seen. */
  readonly onSeen?: (story: Story, choices: readonly Choice[]) => void;
}

export interface Failure {
  readonly plan: string;
  readonly choices: readonly Choice[];
  readonly problems: readonly string[];
}

/** What was seen of one plan. */
export interface Seen {
  readonly plan: string;
  schedules: number;
  /** Those in which a process, or the server, sees something else, or in another order. */
  readonly distinct: Set<number>;
  /** The most steps that one of them has. */
  mostSteps: number;
  /** With how many deviations at most all were seen. */
  complete: number;
  readonly failures: Failure[];
}

/**
 * Lives all schedules of a small world with up to so many deviations from the plain order: first those with one, then
 * those with two, so that the first failure is one of the simplest.
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
        // Where everybody has seen the same at the same times, the same may follow.
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
    const { tamper = (store) => store, onSeen } = this.#reach;
    const story = await live(this.#plan, choices, { countsOptions, tamper });
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
 * All that may follow on the branches, each once: in strides over the whole, so that who stops early has seen something of
 * everything.
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

/** The index of the last that is not greater. */
function lastAtMost(sorted: readonly number[], value: number): number {
  let [low, high] = [0, sorted.length - 1];
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if ((sorted[middle] ?? Infinity) <= value) low = middle;
    else high = middle - 1;
  }
  return low;
}

/** The first number from `from` on that has no divisor in common with `count`. */
function coprime(from: number, count: number): number {
  let one = from;
  while (greatestDivisor(one, count) > 1) one += 1;
  return one;
}

function greatestDivisor(one: number, other: number): number {
  return other === 0 ? one : greatestDivisor(other, one % other);
}
