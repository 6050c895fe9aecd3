import { assertWoven, testLocks } from "lockweave/testing";
import { afterAll, afterEach, expect, test } from "vitest";
import { OrdersService } from "./orders.service.js";

const locks = testLocks({ waiting: true });
afterEach(() => locks.reset());
afterAll(() => locks.close());

test("an order is paid once, whoever else pays it at the same time", async () => {
  assertWoven(OrdersService.prototype.pay);
  const orders = new OrdersService();
  expect(await Promise.all([orders.pay("A1"), orders.pay("A1")])).toEqual([
    "A1 is paid",
    "A1 was paid before",
  ]);
  expect(locks.acquired).toEqual(["LOCK_pay_A1", "LOCK_pay_A1"]);
});
