import type { ReleaseReply, ReleaseRequest } from "../port";
import type { Hold } from "./hold";
import type { Holds } from "./holds";
import type { Master } from "./master";
import type { Masters } from "./masters";

/** Releases holds on which nobody may rely anymore. */
export class Rollback {
  readonly #masters: Masters;
  readonly #holds: Holds;
  readonly #longestLockTimeMs: number;

  constructor(masters: Masters, holds: Holds, longestLockTimeMs: number) {
    this.#masters = masters;
    this.#holds = holds;
    this.#longestLockTimeMs = longestLockTimeMs;
  }

  /**
   * Abandons a hold: releases it at all masters that have it or may still get it. The gate is last, so that the next caller that passes it
   * finds the other masters free. The hold was never reported as acquired, or is being reported as lost.
   */
  async abandon(hold: Hold, patienceMs: number, gate?: Master): Promise<void> {
    this.#holds.end(hold);
    const releases: Promise<unknown>[] = [];
    for (const master of hold.asked.keys()) {
      if (master === gate || hold.tally.voteOf(master)?.says === "no") continue;
      const sent = this.releaseAt(master, hold, patienceMs);
      if (hold.grantedBy.has(master)) releases.push(sent);
    }
    await this.#masters.awaitReplies(releases, () => false, patienceMs);
    if (gate !== undefined) void this.releaseAt(gate, hold, patienceMs);
  }

  async releaseAt(master: Master, hold: Hold, timeoutMs: number): Promise<void> {
    const { key, requestId } = hold.request;
    await this.send({ key, requestId }, hold, master, timeoutMs).catch(() => {});
  }

  send(
    request: ReleaseRequest,
    hold: Hold | undefined,
    master: Master,
    timeoutMs: number,
  ): Promise<ReleaseReply> {
    const sent = master.release(request, hold?.lockTimeMs ?? this.#longestLockTimeMs, timeoutMs);
    const ended = sent.then(
      ({ released }) => released,
      () => false,
    );
    hold?.releases.set(master, ended);
    return sent;
  }
}
