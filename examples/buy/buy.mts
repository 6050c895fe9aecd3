import { configure, memoryStore, shutdown } from "lockweave";

configure({ store: memoryStore() });
let left = 1;

/** @redisLock businessFlag=buy keyName=article */
async function buy(article: string): Promise<string> {
  if (left === 0) return `${article} is sold out`;
  await new Promise((resolve) => setTimeout(resolve, 100)); // The customer pays.
  left -= 1;
  return `sold ${article}`;
}

console.log(await Promise.all([buy("gold"), buy("gold")]));
await shutdown();
