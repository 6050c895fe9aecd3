import { randomUUID } from "node:crypto";
import type { Deployment } from "../port/deployment";
import { LockScanner, type SeenLock } from "../lock-scanner";
import {
  CHANGED_MEANWHILE,
  whyNotReleasable,
  releaseByForce,
  releasedText,
  releaseQuestion,
} from "../force-release";
import type { Question } from "./state";

interface PendingRelease {
  readonly seen: SeenLock;
  readonly now: boolean;
  readonly until: number;
}

const ANSWER_TIMEOUT_MS = 60_000;

/** Releases locks by force after a second question. Each answer counts once, and only for the hold that the question showed. */
export class Releases {
  readonly #deployment: Deployment;
  readonly #pending = new Map<string, PendingRelease>();
  /** Releases run one at a time, because the runtime has only one configuration. */
  #lastRelease: Promise<unknown> = Promise.resolve();

  constructor(deployment: Deployment) {
    this.#deployment = deployment;
  }

  /** Returns the question, or why nothing can be released. */
  async ask(key: string, now: boolean): Promise<Question | string> {
    const seen = await new LockScanner(this.#deployment).lookAtOne(key);
    const reason = whyNotReleasable(key, seen, now);
    if (seen === undefined || reason !== undefined) return reason ?? "";
    const time = performance.now();
    for (const [id, { until }] of this.#pending) if (until < time) this.#pending.delete(id);
    const confirmation = randomUUID();
    this.#pending.set(confirmation, { seen, now, until: time + ANSWER_TIMEOUT_MS });
    return { question: releaseQuestion(seen.row, now), confirmation, lock: seen.row };
  }

  /** Acts on the answer, and returns what happened. */
  async confirm(confirmation: string): Promise<string> {
    const pending = this.#pending.get(confirmation);
    this.#pending.delete(confirmation);
    if (pending === undefined || pending.until < performance.now())
      return "Nothing was changed, because the confirmation is unknown or older than a minute.";
    const done = this.#lastRelease.then(() => this.#release(pending));
    this.#lastRelease = done.catch(() => {});
    return await done;
  }

  async #release({ seen, now }: PendingRelease): Promise<string> {
    const isReleased = await releaseByForce(this.#deployment, seen, now);
    return isReleased ? releasedText(seen.row, now) : CHANGED_MEANWHILE;
  }
}
