import type { Redis } from "ioredis";
import { until } from "./until";

/** Waits until the key's time to live increases, which only a renewal does. */
export async function renewalOf(key: string, client: Redis): Promise<void> {
  let before = Infinity;
  await until(async () => {
    const now = await client.pttl(key);
    const isRenewed = now > before;
    before = now;
    return isRenewed;
  });
}
