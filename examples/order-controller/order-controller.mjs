import * as lockweave from "lockweave/runtime";
import { setTimeout as sleep } from "node:timers/promises";
export class OrderController {
    #work;
    constructor(log) {
        this.#work = async (what, ms) => {
            log(`${what}: works`);
            await sleep(ms);
            log(`${what}: done`);
            return `${what}: ok`;
        };
    }
    /** @redisLock businessFlag=payOrder keyName=orderNo */
    async testValue(orderNo) {
        const lock = lockweave.open({ site: "OrderController.testValue", businessFlag: "payOrder" }, orderNo);
        while (!(await lockweave.acquire(lock)))
            void (await lockweave.retryCheck(lock));
        try {
            lockweave.assertHeld(lock);
            return await this.#work(`testValue ${orderNo}`, 300);
        }
        catch (error) {
            throw lockweave.fail(lock, error);
        }
        finally {
            await lockweave.release(lock);
        }
    }
    /**
     * One lock for each order of each user.
     *
     * @redisLock businessFlag=userOrder keyName=order keyType=CLASS keyClass=Order
     *            fieldName=user.id,orderNo
     */
    async testBean(order) {
        const lock = lockweave.open({ site: "OrderController.testBean", businessFlag: "userOrder" }, order.user.id, order.orderNo);
        while (!(await lockweave.acquire(lock)))
            void (await lockweave.retryCheck(lock));
        try {
            lockweave.assertHeld(lock);
            return await this.#work(`testBean ${order.user.id}/${order.orderNo}`, 50);
        }
        catch (error) {
            throw lockweave.fail(lock, error);
        }
        finally {
            await lockweave.release(lock);
        }
    }
    /** @redisLock businessFlag=payOrder keyName=body keyType=JSON fieldName=orderNo */
    async testJson(body) {
        const lock = lockweave.open({ site: "OrderController.testJson", businessFlag: "payOrder" }, lockweave.jsonField(body, "orderNo", "OrderController.testJson"));
        while (!(await lockweave.acquire(lock)))
            void (await lockweave.retryCheck(lock));
        try {
            lockweave.assertHeld(lock);
            return await this.#work(`testJson ${body}`, 50);
        }
        catch (error) {
            throw lockweave.fail(lock, error);
        }
        finally {
            await lockweave.release(lock);
        }
    }
    /** @redisLock businessFlag=retryOrder keyName=orderNo lockTime=20 */
    async testRetry(orderNo) {
        const lock = lockweave.open({ site: "OrderController.testRetry", businessFlag: "retryOrder", lockTime: "20s" }, orderNo);
        while (!(await lockweave.acquire(lock)))
            void (await lockweave.retryCheck(lock));
        try {
            lockweave.assertHeld(lock);
            return await this.#work(`testRetry ${orderNo}`, 6_000);
        }
        catch (error) {
            throw lockweave.fail(lock, error);
        }
        finally {
            await lockweave.release(lock);
        }
    }
}
