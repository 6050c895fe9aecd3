import { exampleFiles } from "../examples";
import type { Files } from "../project";
import type { Place } from "./bundlers";

export const ORDER = `import { receipt as write } from "./receipt.js"; const startedAt = Date.now();

export class OrderService {
  private readonly inside = new Set<string>();
  together = false;

  /** @redisLock businessFlag=payOrder keyName=orderNo lockTime=20 */
  async pay(orderNo: string): Promise<string> {
    this.together ||= this.inside.has(orderNo);
    this.inside.add(orderNo);
    await new Promise((resolve) => setTimeout(resolve, startedAt > 0 ? 5 : 10));
    this.inside.delete(orderNo);
    if (orderNo === "none") { return this.refuse(orderNo) }
    return write(orderNo);
  }

  async refuse(reason: string): Promise<string> {
    throw new RangeError(reason);
  }
}
`;

/** A file whose tag has a suspicious lock time. */
export const RECEIPT = `/** @redisLock businessFlag=receipt keyName=orderNo lockTime=5000 */
export async function receipt(orderNo: string): Promise<string> {
  await Promise.resolve();
  if (orderNo === "bad") throw new TypeError("bad order");
  return "paid " + orderNo;
}
`;

const MAIN = `import { configure, memoryStore, shutdown } from "lockweave";
import { OrderService } from "./order.js";

const [, , example] = process.argv;
if (example === "order-controller") await import("./order-controller/main.js");
else if (example === "reentrant") await import("./reentrant/reentrant.js");
else {
  configure({ store: memoryStore() });
  const service = new OrderService();
  console.log((await Promise.all([service.pay("A1"), service.pay("A1")])).join(), service.together);
  for (const orderNo of ["none", "bad"]) await service.pay(orderNo).catch((error) => console.log(error.stack));
  await shutdown();
}
`;

export const SOURCES: Files = {
  "src/main.ts": MAIN,
  "src/order.ts": ORDER,
  "src/receipt.ts": RECEIPT,
  // With extensions that each bundler resolves without configuration.
  ...Object.fromEntries(
    Object.entries(exampleFiles("ts", "js")).map(([file, text]) => [`src/${file}`, text]),
  ),
};

/** A file with three mistakes in its tags. */
export const WRONG = `export class OrderService {
  /** @redisLock businessFlag=payOrder keyNmae=orderNo */
  async pay(orderNo: string): Promise<string> {
    return orderNo;
  }

  /** @redisLock businessFlag=payOrder keyName=orderNO lockTime=soon */
  async refund(orderNo: string): Promise<string> {
    return orderNo;
  }
}
`;

/** The message for each mistake, by the text at which it is reported. */
export const MISTAKES: Readonly<Record<string, string>> = {
  keyNmae: "LW1002: There is no attribute `keyNmae`. Did you mean `keyName`?",
  orderNO: "LW1202: The function has no parameter `orderNO`. Did you mean `orderNo`?",
  soon: "LW1104: Expected `lockTime` to be",
};

/** Returns the position of the first occurrence. */
export function placeIn(text: string, words: string): Place {
  const lines = (text.split(words)[0] ?? "").split("\n");
  return { line: lines.length, column: (lines.at(-1) ?? "").length + 1 };
}

/** The errors for {@link WRONG} in `src/order.ts`, as hosts print them that use the format of compilers. */
export const ERRORS_IN_WRONG: readonly string[] = Object.entries(MISTAKES).map(([word, message]) => {
  const { line, column } = placeIn(WRONG, word);
  return `src/order.ts(${line},${column}): error ${message}`;
});
