import { AsyncResource } from "node:async_hooks";
import type { CancelTimer } from "../../../runtime/base/clock";
import { Stops } from "../../support/stopping-clock";

/** The owner of an event: a process, by its number, the server, or the world around them. */
export type Owner = number | "server" | "world";

/**
 * The kind of an event. `to server` and `to process` are messages, `timer` is a timer of a process, and `act` is an action of
 * a process. A `fault` never comes by itself.
 */
export type Kind = "to server" | "to process" | "timer" | "act" | "fault";

/** An event that has not happened yet. */
export interface Pending {
  readonly kind: Kind;
  readonly owner: Owner;
  readonly label: string;
  dueAt: number;
  readonly order: number;
  readonly run: () => void;
  /** Executes a command once more. */
  readonly again: (() => void) | undefined;
  isOver: boolean;
}

/** A departure from the plain order at one step. */
export interface Deviation {
  label(): string;
  /** @param next what comes next in the plain order */
  apply(next: Pending): void;
}

/** How long a message is held back: beyond a few others, the command timeout, or a whole lock time. */
export const HOLDS_MS = [7, 150, 2_500] as const;

/**
 * The events that have not happened yet, in virtual time. In the plain order, the first event that is due comes next, and its
 * tick ends before the next one. A deviation lets another event come first or in the same tick, holds a message back, or lets
 * a command arrive twice.
 */
export class Schedule {
  /** Not zero, so that "no time yet" is not mistaken for "never". */
  #now = 5_000;
  #order = 0;
  readonly #pending = new Set<Pending>();
  #hadFault = false;
  /** The event that comes in the same tick as the next one. */
  #together: Pending | undefined;
  /** Called when a process is stopped in the middle of a step. */
  onStop = (): void => {};
  /** The reads of clocks, before each of which a process may be stopped. */
  readonly stops = new Stops(() => this.onStop());

  now(): number {
    return this.#now;
  }

  /** Lets time pass without events. */
  pass(ms: number): void {
    this.#now += ms;
  }

  /**
   * Adds an event. It runs in the async context of this call, as a timer or a reply does.
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

  /** Returns a clock for the owner. Its timers are events of that owner. */
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

  /** Returns the next event in the plain order. */
  next(): Pending | undefined {
    let first: Pending | undefined;
    for (const one of this.#pending) {
      if (one.dueAt < Infinity && (first === undefined || isBefore(one, first))) first = one;
    }
    return first;
  }

  /** Returns the possible deviations at this step. The same past always gives the same list. */
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

  /** Runs the event, and the one that comes in the same tick. */
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

  /** Delays all messages until after the timer. */
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
