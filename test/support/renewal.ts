import type { Redis } from "ioredis";
import { until } from "./until";

/** Waits until a renewal gives the key more time than it had left. Nothing else raises what is left. */
export async function renewalOf(key: string, client: Redis): Promise<void> {
  let before = Infinity;
  await until(async () => {
    const now = await client.pttl(key);
    const isRenewed = now > before;
    before = now;
    return isRenewed;
  });
}
