// A process that makes one deposit: `writer.mjs <url of the ledger> trusting|fenced <amount>`.
// After it has read the balance, it sends the balance to its parent process, and waits for a message.
import { once } from "node:events";
import { configure, LockError, shutdown } from "lockweave";
import { Account } from "./account.mjs";
const [, , url = "", kind = "", amount] = process.argv;
process.once("disconnect", () => process.exit());
const ledger = {
    async read(name) {
        return Number(await (await fetch(`${url}/${name}`)).text());
    },
    async write(name, balance, token) {
        const query = token === undefined ? `balance=${balance}` : `balance=${balance}&token=${token}`;
        const response = await fetch(`${url}/${name}?${query}`, { method: "PUT" });
        if (!response.ok)
            throw new Error(`the ledger rejects the write: ${await response.text()}`);
    },
};
const account = new Account(ledger, async (balance) => {
    const permission = once(process, "message");
    process.send?.(balance);
    await permission;
});
// The errors report what happens to the lock, so this needs no log.
configure({ redis: process.env["REDIS_URL"] ?? "", logger: { warn() { } } }, "woven", "lockweave/examples/fencing/writer.mts");
let outcome = "done";
try {
    if (kind === "fenced")
        await account.depositFenced(kind, Number(amount));
    else
        await account.depositTrusting(kind, Number(amount));
}
catch (error) {
    outcome = error instanceof LockError ? error.code : error.message;
}
await shutdown();
process.send?.(outcome);
