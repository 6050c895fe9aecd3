import type { ReleaseReply, ReleaseRequest } from "../port";
import type { Hold } from "./hold";
import type { Holds } from "./holds";
import type { Master } from "./master";
import type { Masters } from "./masters";

/** Gives back what nobody is to believe in. */
export class GiveBack {
  readonly #masters: Masters;
  readonly #holds: Holds;
  readonly #longestLockTimeMs: number;

  constructor(masters: Masters, holds: Holds, longestLockTimeMs: number) {
    this.#masters = masters;
    this.#holds = holds;
    this.#longestLockTimeMs = longestLockTimeMs;
  }

  /**
   * It is not ours: what masters have for it, or will have, is given back; the gate last, so that the next one who passes
   * it finds the others free. Nobody was told that it is taken; or it is being told that it is lost.
   */
  async giveUp(hold: Hold, patienceMs: number, gate?: Master): Promise<void> {
    this.#holds.end(hold);
    const drops: Promise<unknown>[] = [];
    for (const master of hold.asked.keys()) {
      if (master === gate || hold.tally.of(master)?.says === "no") continue;
      const sent = this.releaseAt(master, hold, patienceMs);
      if (hold.at.has(master)) drops.push(sent);
    }
    await this.#masters.heard(drops, () => false, patienceMs);
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
    hold?.ends.set(master, ended);
    return sent;
  }
}
