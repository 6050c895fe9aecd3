import type { Owner } from "./schedule";

/** Distinguishes schedules by what each process and the server see, not by the order of concurrent events. */
export class Fingerprint {
  readonly #ofOrder = new Map<Owner, number>();
  readonly #withTimes = new Map<Owner, number>();

  add(owner: Owner, label: string, at: number): void {
    const of = (sums: Map<Owner, number>, text: string): void =>
      void sums.set(owner, mixed(sums.get(owner) ?? 7, text));
    of(this.#ofOrder, label);
    of(this.#withTimes, `${label}@${at}`);
  }

  get ofOrder(): number {
    return joined(this.#ofOrder);
  }

  get withTimes(): number {
    return joined(this.#withTimes);
  }
}

function joined(sums: ReadonlyMap<Owner, number>): number {
  let sum = 0;
  for (const [owner, one] of sums) sum = (sum + mixed(one, String(owner))) % Number.MAX_SAFE_INTEGER;
  return sum;
}

/** Two hashes of 26 bits in one number. */
function mixed(sum: number, text: string): number {
  let high = Math.floor(sum / 0x4_00_00_00);
  let low = sum % 0x4_00_00_00;
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    low = (Math.imul(low ^ code, 0x01_00_01_93) >>> 0) % 0x4_00_00_00;
    high = (Math.imul(high + code, 0x85_eb_ca_6b) >>> 0) % 0x4_00_00_00;
  }
  return high * 0x4_00_00_00 + low;
}
