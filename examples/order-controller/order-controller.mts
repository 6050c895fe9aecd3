import { setTimeout as sleep } from "node:timers/promises";

export interface Order {
  orderNo: string;
  user: { id: number };
}

export class OrderController {
  readonly #work: (what: string, ms: number) => Promise<string>;

  constructor(log: (line: string) => void) {
    this.#work = async (what, ms) => {
      log(`${what}: works`);
      await sleep(ms);
      log(`${what}: done`);
      return `${what}: ok`;
    };
  }

  /** @redisLock businessFlag=payOrder keyName=orderNo */
  async testValue(orderNo: string): Promise<string> {
    return this.#work(`testValue ${orderNo}`, 300);
  }

  /**
   * One lock for each order of each user.
   *
   * @redisLock businessFlag=userOrder keyName=order keyType=CLASS keyClass=Order
   *            fieldName=user.id,orderNo
   */
  async testBean(order: Order): Promise<string> {
    return this.#work(`testBean ${order.user.id}/${order.orderNo}`, 50);
  }

  /** @redisLock businessFlag=payOrder keyName=body keyType=JSON fieldName=orderNo */
  async testJson(body: string): Promise<string> {
    return this.#work(`testJson ${body}`, 50);
  }

  /** @redisLock businessFlag=retryOrder keyName=orderNo lockTime=20 */
  async testRetry(orderNo: string): Promise<string> {
    return this.#work(`testRetry ${orderNo}`, 6_000);
  }
}
