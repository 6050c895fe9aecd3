import * as lockweave from "lockweave/runtime";
import { currentLock } from "lockweave";
/** Makes deposits. Each reads the balance, does slow work, and writes the new balance. */
export class Account {
    ledger;
    work;
    constructor(ledger, work) {
        this.ledger = ledger;
        this.work = work;
    }
    /** @redisLock businessFlag=trusting keyName=name lockTime=1s */
    async depositTrusting(name, amount) {
        const lock = lockweave.open({ site: "Account.depositTrusting", businessFlag: "trusting", lockTime: "1s" }, name);
        while (!(await lockweave.acquire(lock)))
            void (await lockweave.retryCheck(lock));
        try {
            lockweave.assertHeld(lock);
            const balance = await this.ledger.read(name);
            await this.work(balance);
            await this.ledger.write(name, balance + amount);
        }
        catch (error) {
            throw lockweave.fail(lock, error);
        }
        finally {
            await lockweave.release(lock);
        }
    }
    /** @redisLock businessFlag=fenced keyName=name fencing=true lockTime=1s */
    async depositFenced(name, amount) {
        const lock = lockweave.open({ site: "Account.depositFenced", businessFlag: "fenced", fencing: true, lockTime: "1s" }, name);
        while (!(await lockweave.acquire(lock)))
            void (await lockweave.retryCheck(lock));
        try {
            lockweave.assertHeld(lock);
            const balance = await this.ledger.read(name);
            await this.work(balance);
            await this.ledger.write(name, balance + amount, currentLock(lock).fencingToken);
        }
        catch (error) {
            throw lockweave.fail(lock, error);
        }
        finally {
            await lockweave.release(lock);
        }
    }
}
