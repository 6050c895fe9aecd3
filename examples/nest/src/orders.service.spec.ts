import { assertWoven, testLocks } from "lockweave/testing";
import { afterAll, afterEach, expect, test } from "vitest";
import { OrdersRepository } from "./orders.repository.js";
import { OrdersService } from "./orders.service.js";

const locks = testLocks({ waiting: true });
afterEach(() => locks.reset());
afterAll(() => locks.close());

test("an order is paid once, even if two callers pay it at the same time", async () => {
  assertWoven(OrdersService.prototype.pay);
  const orders = new OrdersService(new OrdersRepository());
  expect(await Promise.all([orders.pay("A1"), orders.pay("A1")])).toEqual([
    "A1 is paid",
    "A1 was paid before",
  ]);
  expect(locks.acquired).toEqual(["LOCK_pay_A1", "LOCK_pay_A1"]);
});

test("a payment is not saved without the lock", async () => {
  await expect(new OrdersRepository().savePayment("A1")).rejects.toMatchObject({ code: "LOCK_NOT_HELD" });
});
