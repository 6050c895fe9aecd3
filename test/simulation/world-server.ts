import type { Clock } from "../../runtime/base/clock";

/** The time of the world that a server is in. */
export type WorldTime = Pick<Clock, "now" | "after" | "epochMicroseconds">;

/** A server of a world, which may stall, restart, and have its clock set. */
export abstract class WorldServer {
  isDown = false;
  readonly world: WorldTime;
  /** Its own clock. */
  readonly clock: Clock;
  #jumpMs = 0;
  /** The commands that arrived during a stall. */
  #backlog: (() => void)[] | undefined;

  constructor(world: WorldTime) {
    this.world = world;
    this.clock = {
      now: () => world.now() + this.#jumpMs,
      epochMicroseconds: () => world.epochMicroseconds() + this.#jumpMs * 1_000,
      after: (ms, callback) => world.after(ms, callback),
      afterInBackground: (ms, callback) => world.after(ms, callback),
      timer: () => NO_TIMER,
      timerInBackground: () => NO_TIMER,
    };
  }

  /** Executes an arrived command now, or after the stall. */
  receive(command: () => void): void {
    if (this.#backlog === undefined) command();
    else this.#backlog.push(command);
  }

  stall(ms: number): void {
    if (this.#backlog !== undefined || this.isDown) return;
    this.#backlog = [];
    this.world.after(ms, () => this.#workOff());
  }

  /** Ends all faults of the server. */
  moveOn(): void {
    this.isDown = false;
    this.#workOff();
  }

  #workOff(): void {
    const backlog = this.#backlog ?? [];
    this.#backlog = undefined;
    for (const command of backlog) this.world.after(0, command);
  }

  /** Stops the server as a crash does, and starts it again after `ms`. */
  restart(ms: number): void {
    if (this.isDown) return;
    this.isDown = true;
    this.#backlog &&= [];
    this.onCrash();
    this.world.after(ms, () => {
      this.isDown = false;
    });
  }

  /** Sets the server's clock. */
  jump(ms: number): void {
    this.#jumpMs += ms;
    this.onJump(ms);
  }

  protected abstract onCrash(): void;
  protected abstract onJump(ms: number): void;

  /** Ends the first hold of the key, as an operator may. */
  abstract delete(key: string): Promise<void>;
  /** Revokes the holds of the key. */
  abstract revoke(key: string): Promise<void>;
  /** Returns whether the key has no holder and no waiter. It acquires the key for that. */
  abstract isForgotten(key: string): Promise<boolean>;
}

/** The stores of servers use no timers. */
const NO_TIMER = { set: () => {}, clear: () => {} };
