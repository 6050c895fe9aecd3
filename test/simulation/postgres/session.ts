import type { Connection, ConnectionListeners } from "../../../runtime/stores/postgres/connection";
import type { PostgresRow } from "../../../runtime/stores/postgres/client-port";
import { belongsToNobody } from "../contexts";
import type { Refusals } from "../process-observer";
import type { End } from "../simulated-store";
import { serverError } from "./database";
import type { Backend, SimulatedPostgres } from "./server";

/** What all connections of one process share. */
export interface Route extends End {
  readonly server: SimulatedPostgres;
  /** Whether a pooler is in the way. Then no notification ever arrives. */
  readonly isPooled: boolean;
  readonly refusals: Refusals;
}

interface Answer {
  readonly resolve: (rows: readonly PostgresRow[]) => void;
  readonly reject: (error: Error) => void;
}

/** The share of rejected statements that timed out while waiting for a lock. The others were canceled. */
const LOCK_TIMEOUTS = 0.5;

/**
 * One connection of a client library to the server of a world. Nothing on it is lost or overtaken unless it breaks. It may break so that
 * both sides notice, or turn silent so that nobody does.
 */
export class Session implements Connection, Backend {
  readonly channels = new Set<string>();
  readonly #route: Route;
  readonly #listeners: ConnectionListeners;
  readonly #onGone: (session: Session) => void;
  #state: "new" | "open" | "broken" = "new";
  /** Whether nothing arrives any more, in either direction. */
  #isSilent = false;
  readonly #lastArrival = { there: 0, back: 0 };
  /** What is on the way to the server. */
  readonly #underWay = new Set<() => void>();
  #unanswered: Answer | undefined;

  constructor(route: Route, listeners: ConnectionListeners, onGone: (session: Session) => void) {
    this.#route = route;
    this.#listeners = listeners;
    this.#onGone = onGone;
  }

  // ---- statements -------------------------------------------------------------------------------------

  run(text: string, values: readonly unknown[]): Promise<readonly PostgresRow[]> {
    belongsToNobody("a command");
    return this.#ask(() => this.#send(text, values));
  }

  async connect(): Promise<void> {
    belongsToNobody("a connection");
    await this.#ask(() => this.#connect());
  }

  #ask(send: () => void): Promise<readonly PostgresRow[]> {
    return new Promise((resolve, reject) => {
      if (this.#state === "broken") return reject(new Error("Connection terminated"));
      this.#unanswered = { resolve, reject };
      send();
    });
  }

  #connect(): void {
    const { server, random, weather } = this.#route;
    const isRefused = random.happens(weather().refused / 2);
    this.#travel("there", () => {
      if (server.isDown) return this.#refuse(new Error("connect ECONNREFUSED"));
      if (isRefused) return this.#refuse(serverError("53300", "sorry, too many clients already", "FATAL"));
      server.open(this);
      this.#travel("back", () =>
        this.#arrive(({ resolve }) => {
          this.#state = "open";
          resolve([]);
        }),
      );
    });
  }

  #refuse(error: Error): void {
    const { refusals, process, observer } = this.#route;
    if (refusals.isSpinning(process.now())) return observer.onSpinning(); // Otherwise this tick would never end.
    this.#travel("back", () => this.#arrive(() => this.#end(error)));
  }

  #send(text: string, values: readonly unknown[]): void {
    const { server, random, weather } = this.#route;
    const { lost, replyLost, refused } = weather();
    if (random.happens(lost)) this.#isSilent = true;
    const turnsSilent = random.happens(replyLost);
    const isRefused = random.happens(refused);
    this.#travel("there", () =>
      server.receive(() => {
        if (server.isDown) return;
        const settle = isRefused ? refusal(random.happens(LOCK_TIMEOUTS)) : this.#execute(text, values);
        if (turnsSilent) this.#isSilent = true;
        this.#travel("back", () => this.#arrive(settle));
      }),
    );
  }

  /** Runs the statement. Returns how its reply settles it. Throws if the model does not know the statement. */
  #execute(text: string, values: readonly unknown[]): (answer: Answer) => void {
    try {
      const rows = this.#route.server.execute(this, text, values);
      return ({ resolve }) => resolve(rows);
    } catch (error) {
      if (!(error instanceof Error) || !("code" in error)) throw error;
      return ({ reject }) => reject(error);
    }
  }

  #arrive(settle: (answer: Answer) => void): void {
    const answer = this.#unanswered;
    if (this.#state === "broken" || answer === undefined) return;
    settle(answer);
    this.#route.observer.onDelivered();
  }

  notify(payload: string): void {
    const { isPooled, random, weather } = this.#route;
    if (random.happens(weather().wakeUpLost / 4)) this.#isSilent = true;
    if (isPooled) return;
    this.#travel("back", () => {
      if (this.#state === "open") this.#listeners.notified(payload);
    });
  }

  /** Lets something travel, in the order in which it was sent. What arrives at the process waits until it is awake. */
  #travel(way: "there" | "back", arrive: () => void): void {
    if (this.#isSilent) return;
    const { server, random, weather, process } = this.#route;
    const now = server.world.now();
    const arrival = Math.max(now + random.next() * weather().latencyMs, this.#lastArrival[way]);
    this.#lastArrival[way] = arrival;
    const land = (): void => {
      if (way === "back") process.arrive(arrive);
      else if (this.#underWay.delete(land)) arrive();
    };
    if (way === "there") this.#underWay.add(land);
    server.world.after(arrival - now, land);
  }

  // ---- ends -------------------------------------------------------------------------------------------

  /** Breaks the connection. What is on the way to the server may still arrive. */
  break(): void {
    const { server, random, process } = this.#route;
    server.close(this);
    if (server.isDown || random.happens(0.5)) this.#underWay.clear();
    const error = random.happens(0.5)
      ? new Error("read ECONNRESET")
      : serverError("57P01", "terminating connection due to administrator command", "FATAL");
    this.#isSilent = true;
    process.arrive(() => this.#end(error));
  }

  #end(error: Error): void {
    if (this.#state === "broken") return;
    this.#state = "broken";
    this.#onGone(this);
    this.#unanswered?.reject(error);
    this.#listeners.ended(error);
  }

  end(): Promise<void> {
    this.destroy();
    return Promise.resolve();
  }

  destroy(): void {
    if (this.#state === "broken") return;
    this.#state = "broken";
    this.#route.server.close(this);
    this.#onGone(this);
    this.#unanswered?.reject(new Error("Connection terminated"));
  }
}

/** The server cancels the statement, so that nothing of it happens. */
function refusal(isLockTimeout: boolean): (answer: Answer) => void {
  const error = isLockTimeout
    ? serverError("55P03", "canceling statement due to lock timeout")
    : serverError("57014", "canceling statement due to statement timeout");
  return ({ reject }) => reject(error);
}
