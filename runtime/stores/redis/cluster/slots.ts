/** The number of slots of a cluster. */
export const SLOTS = 16_384;

/** The table of CRC-16/XMODEM, whose polynomial is x^16 + x^12 + x^5 + 1. */
const TABLE = Uint16Array.from({ length: 256 }, (_, byte) => {
  let remainder = byte << 8;
  for (let bit = 0; bit < 8; bit += 1) {
    remainder = (remainder & 0x8000) === 0 ? remainder << 1 : (remainder << 1) ^ 0x1021;
  }
  return remainder;
});

/** Returns the cluster slot of a key, which includes the client's prefix. */
export function slotOf(key: string): number {
  const opens = key.indexOf("{");
  const closes = opens < 0 ? -1 : key.indexOf("}", opens + 1);
  const hashed = closes > opens + 1 ? key.slice(opens + 1, closes) : key;
  let remainder = 0;
  for (let index = 0; index < hashed.length; index += 1) {
    const code = hashed.charCodeAt(index);
    if (code > 0x7f) return crc(Buffer.from(hashed)) % SLOTS;
    remainder = next(remainder, code);
  }
  return remainder % SLOTS;
}

/** Returns a key in the slot. */
export function keyIn(slot: number): string {
  for (let count = 0; ; count += 1) if (slotOf(String(count)) === slot) return String(count);
}

function crc(bytes: Uint8Array): number {
  return bytes.reduce(next, 0);
}

function next(remainder: number, byte: number): number {
  return ((remainder << 8) ^ (TABLE[((remainder >> 8) ^ byte) & 0xff] ?? 0)) & 0xffff;
}
