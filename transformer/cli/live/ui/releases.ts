import { randomUUID } from "node:crypto";
import { holderText } from "../rows";
import type { Home } from "../home";
import type { LockRow } from "../look";
import { Survey, type SurveyOptions } from "../survey";
import { take, takeQuestion } from "../take";
import type { Question } from "./state";

interface Asked {
  readonly key: string;
  readonly now: boolean;
  readonly heldBy: string;
  readonly until: number;
}

const ANSWERED_WITHIN_MS = 60_000;

/** Takes a lock from those who hold it, once that was asked twice: the answer is good for those who were shown, and once. */
export class Releases {
  readonly #home: Home;
  readonly #options: SurveyOptions;
  readonly #asked = new Map<string, Asked>();
  /** One at a time: the runtime has one configuration. */
  #last: Promise<unknown> = Promise.resolve();

  constructor(home: Home, options: SurveyOptions) {
    this.#home = home;
    this.#options = options;
  }

  /** @returns why there is nothing to ask, as a text */
  async ask(key: string, now: boolean): Promise<Question | string> {
    const lock = await this.#look(key);
    if (lock === undefined || lock.holders.length === 0)
      return `${key} is free: there is nothing to release.`;
    const time = performance.now();
    for (const [id, { until }] of this.#asked) if (until < time) this.#asked.delete(id);
    const confirmation = randomUUID();
    this.#asked.set(confirmation, { key, now, heldBy: heldBy(lock), until: time + ANSWERED_WITHIN_MS });
    return { question: takeQuestion(now), confirmation, lock };
  }

  /** @returns what came of it */
  async confirm(confirmation: string): Promise<string> {
    const asked = this.#asked.get(confirmation);
    this.#asked.delete(confirmation);
    if (asked === undefined || asked.until < performance.now())
      return "Nothing was changed: that question was not asked, or too long ago.";
    const done = this.#last.then(() => this.#take(asked));
    this.#last = done.catch(() => {});
    return await done;
  }

  async #take({ key, now, heldBy: before }: Asked): Promise<string> {
    const lock = await this.#look(key);
    const isSame = lock !== undefined && heldBy(lock) === before;
    if (!isSame || !(await take(this.#home, this.#options.prefix, lock, now)))
      return "Meanwhile somebody else holds it, or nobody: nothing was changed.";
    return `${now ? "Freed" : "Revoked"}: it was held by ${lock.holders.map(holderText).join(", ")}.`;
  }

  #look(key: string): Promise<LockRow | undefined> {
    return new Survey(this.#options).lookAtOne(this.#home, key);
  }
}

function heldBy({ holders }: LockRow): string {
  return holders
    .map(({ storeValue }) => storeValue)
    .toSorted()
    .join("\n");
}
