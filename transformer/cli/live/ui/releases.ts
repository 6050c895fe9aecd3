import { randomUUID } from "node:crypto";
import type { Deployment } from "../deployment";
import { LockScanner, type SeenLock, type SurveyOptions } from "../lock-scanner";
import { CHANGED_MEANWHILE, nothingToTake, take, takenText, takeQuestion } from "../take";
import type { Question } from "./state";

interface Asked {
  readonly seen: SeenLock;
  readonly now: boolean;
  readonly until: number;
}

const ANSWERED_WITHIN_MS = 60_000;

/** Releases locks by force after a second question. Each answer counts once, and only for the hold that the question showed. */
export class Releases {
  readonly #home: Deployment;
  readonly #options: SurveyOptions;
  readonly #asked = new Map<string, Asked>();
  /** Releases run one at a time, because the runtime has only one configuration. */
  #last: Promise<unknown> = Promise.resolve();

  constructor(home: Deployment, options: SurveyOptions) {
    this.#home = home;
    this.#options = options;
  }

  /** Returns the question, or why nothing can be released. */
  async ask(key: string, now: boolean): Promise<Question | string> {
    const seen = await new LockScanner(this.#options).lookAtOne(this.#home, key);
    const nothing = nothingToTake(key, seen, now);
    if (seen === undefined || nothing !== undefined) return nothing ?? "";
    const time = performance.now();
    for (const [id, { until }] of this.#asked) if (until < time) this.#asked.delete(id);
    const confirmation = randomUUID();
    this.#asked.set(confirmation, { seen, now, until: time + ANSWERED_WITHIN_MS });
    return { question: takeQuestion(now), confirmation, lock: seen.row };
  }

  /** Acts on the answer, and returns what happened. */
  async confirm(confirmation: string): Promise<string> {
    const asked = this.#asked.get(confirmation);
    this.#asked.delete(confirmation);
    if (asked === undefined || asked.until < performance.now())
      return "Nothing was changed: that question was never asked, or more than a minute ago.";
    const done = this.#last.then(() => this.#take(asked));
    this.#last = done.catch(() => {});
    return await done;
  }

  async #take({ seen, now }: Asked): Promise<string> {
    const isTaken = await take(this.#home, this.#options.prefix, seen, now);
    return isTaken ? takenText(seen.row, now) : CHANGED_MEANWHILE;
  }
}
