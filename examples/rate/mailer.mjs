import * as lockweave from "lockweave/runtime";
/** Sends mail through a server that accepts at most three connections from all machines together. */
export class Mailer {
    /** The number of connections, now and at most. */
    connections = { now: 0, most: 0 };
    /** @redisLock businessFlag=mail permits=3 */
    async send(to) {
        const lock = lockweave.open({ site: "Mailer.send", businessFlag: "mail", permits: 3 });
        while (!(await lockweave.acquire(lock)))
            void (await lockweave.retryCheck(lock));
        try {
            lockweave.assertHeld(lock);
            this.connections.now += 1;
            this.connections.most = Math.max(this.connections.most, this.connections.now);
            await new Promise((resolve) => {
                setTimeout(resolve, 50);
            });
            this.connections.now -= 1;
            return `mail to ${to}`;
        }
        catch (error) {
            throw lockweave.fail(lock, error);
        }
        finally {
            await lockweave.release(lock);
        }
    }
}
