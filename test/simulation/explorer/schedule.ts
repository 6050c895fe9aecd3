import { AsyncResource } from "node:async_hooks";
import type { CancelTimer } from "../../../runtime/clock";
import { Stops } from "../../support/stopping-clock";

/** Whose event it is: a process, by its number; the server; or the world around them. */
export type Owner = number | "server" | "world";

/**
 * What an event is: `to server` and `to process` come over the network; a `timer` of a process; something that a process
 * does (`act`); or a `fault`, which never comes by itself.
 */
export type Kind = "to server" | "to process" | "timer" | "act" | "fault";

/** Something that is still to happen. */
export interface Pending {
  readonly kind: Kind;
  readonly owner: Owner;
  readonly label: string;
  dueAt: number;
  readonly order: number;
  readonly run: () => void;
  /** Of a command: carries it out once more. */
  readonly again: (() => void) | undefined;
  isOver: boolean;
}

/** How the schedule departs from the plain order at one step. */
export interface Deviation {
  label(): string;
  /** @param next what comes next in the plain order */
  apply(next: Pending): void;
}

/** How long a message is held back: beyond a few others, a command's time-out, and a whole lock time. */
export const HOLDS_MS = [7, 150, 2_500] as const;

/**
 * All that is still to happen, in virtual time. In the plain order the first that is due comes next, and everything that
 * it brings about in its tick is over before the one after it. A deviation lets something else come first, or in the same
 * tick; holds a message back; or lets a command arrive twice.
 */
export class Schedule {
  /** Not zero, so that nobody mistakes "no time yet" for "never". */
  #now = 5_000;
  #order = 0;
  readonly #pending = new Set<Pending>();
  #hadFault = false;
  /** What is to come in the same tick as the next one. */
  #together: Pending | undefined;
  /** Called when a process is stopped in the middle of what it does. */
  onStop = (): void => {};
  /** The reads of clocks, before each of which a process may be stopped. */
  readonly stops = new Stops(() => this.onStop());

  now(): number {
    return this.#now;
  }

  /** Time passes, and nothing happens in it. */
  pass(ms: number): void {
    this.#now += ms;
  }

  /**
   * It runs in the async context of this call, as a timer or a reply does.
   *
   * @param dueAt `Infinity`: not in the plain order
   */
  add(kind: Kind, owner: Owner, label: string, dueAt: number, run: () => void, again?: () => void): Pending {
    const order = (this.#order += 1);
    const pending: Pending = {
      kind,
      owner,
      label,
      dueAt,
      order,
      run: AsyncResource.bind(run),
      again: again && AsyncResource.bind(again),
      isOver: false,
    };
    this.#pending.add(pending);
    return pending;
  }

  cancel(pending: Pending): void {
    pending.isOver = true;
    this.#pending.delete(pending);
  }

  /** The time as one of them has it: what it sets is a timer of its own. */
  timeOf(owner: Owner): {
    now(): number;
    after(ms: number, callback: () => void): CancelTimer;
    epochMicroseconds(): number;
  } {
    return {
      now: () => this.#now,
      epochMicroseconds: () => Math.round(1_700_000_000_000_000 + this.#now * 1_000),
      after: (ms, callback) => {
        const timer = this.add("timer", owner, "timer", this.#now + ms, callback);
        return () => this.cancel(timer);
      },
    };
  }

  /** What comes next in the plain order. */
  next(): Pending | undefined {
    let first: Pending | undefined;
    for (const one of this.#pending) {
      if (one.dueAt < Infinity && (first === undefined || isBefore(one, first))) first = one;
    }
    return first;
  }

  /** How the schedule may depart from the plain order now. The same, in the same order, whenever the past is the same. */
  deviations(next: Pending): Deviation[] {
    const found: Deviation[] = [];
    const add = (label: () => string, apply: Deviation["apply"]): void => void found.push({ label, apply });
    const timers = new Map<Owner, Pending>();
    for (const one of this.#pending) {
      if (one === next) continue;
      if (one.kind === "timer") {
        const first = timers.get(one.owner);
        if (first === undefined || isBefore(one, first)) timers.set(one.owner, one);
      } else if (one.kind !== "fault") {
        add(
          () => `${one.label} comes first`,
          () => this.#bringForward(one),
        );
        if (one.owner === next.owner && one.kind !== "to server")
          add(
            () => `${one.label} comes in the same tick`,
            () => (this.#together = one),
          );
      } else if (!this.#hadFault) {
        add(
          () => one.label,
          () => this.#bringForward(one),
        );
      }
    }
    for (const timer of timers.values()) {
      if (timer.dueAt < Infinity && this.#hasMessagesBefore(timer))
        add(
          () => `the network is silent until a timer of ${timer.owner}`,
          () => this.#silence(timer),
        );
    }
    if (next.kind === "to server" || next.kind === "to process") {
      for (const ms of HOLDS_MS)
        add(
          () => `${next.label} is held back for ${ms} ms`,
          () => (next.dueAt += ms),
        );
    }
    const { again } = next;
    if (again !== undefined) {
      for (const ms of [0, ...HOLDS_MS]) {
        add(
          () => `${next.label} comes again ${ms} ms later`,
          () => {
            this.add("to server", "server", `${next.label}, again,`, this.#now + ms + 1, again);
          },
        );
      }
    }
    return found;
  }

  /** Lets it happen. What else is to come in the same tick, happens then. */
  happen(pending: Pending): Pending[] {
    this.cancel(pending);
    if (pending.kind === "fault") this.#hadFault = true;
    this.#now = Math.max(this.#now, pending.dueAt);
    pending.run();
    const together = this.#together;
    this.#together = undefined;
    if (together === undefined || together.isOver) return [pending];
    this.cancel(together);
    together.run();
    return [pending, together];
  }

  #bringForward(pending: Pending): void {
    pending.dueAt = -Infinity;
  }

  /** All that is on its way comes after the timer. */
  #silence(timer: Pending): void {
    for (const one of this.#pending) {
      if (isMessage(one)) one.dueAt = Math.max(one.dueAt, timer.dueAt + 1);
    }
  }

  #hasMessagesBefore(timer: Pending): boolean {
    for (const one of this.#pending) if (isMessage(one) && one.dueAt <= timer.dueAt) return true;
    return false;
  }
}

function isMessage({ kind }: Pending): boolean {
  return kind === "to server" || kind === "to process";
}

function isBefore(one: Pending, other: Pending): boolean {
  return one.dueAt < other.dueAt || (one.dueAt === other.dueAt && one.order < other.order);
}
