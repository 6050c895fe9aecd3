import { Redis } from "ioredis";
import { redisStore } from "../../../runtime/stores/redis/redis";
import { FleetProcess } from "../../support/fleet";

// Several waiters for one key that share nothing but Redis, like processes. They are killed together.

export interface CrowdConfiguration {
  readonly url: string;
  readonly key: string;
  readonly size: number;
}

const { url, key, size } = JSON.parse(process.argv[2] ?? "") as CrowdConfiguration;

for (let nth = 0; nth < size; nth += 1) {
  const member = new FleetProcess({ store: redisStore(new Redis(url)), logger: { warn: () => {} } });
  void member.call(key, { waitTime: "1m" }, () => {});
}
