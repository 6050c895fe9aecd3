// Makes a thousand transfers between three accounts in all directions at once. None deadlocks, and the total stays the same.
import { configure, memoryStore, shutdown } from "lockweave";
import { Bank } from "./bank.mjs";
const redis = process.env["REDIS_URL"];
configure(redis === undefined ? { store: memoryStore() } : { redis }, "woven", "lockweave/examples/transfer/main.mts");
const DIRECTIONS = [
    ["alice", "bob"],
    ["bob", "alice"],
    ["bob", "carol"],
    ["carol", "alice"],
];
const bank = new Bank({ alice: 1_000, bob: 1_000, carol: 1_000 });
async function thousand(transfer) {
    const transfers = Array.from({ length: 1_000 }, (_, n) => {
        const [from, to] = DIRECTIONS[n % DIRECTIONS.length] ?? DIRECTIONS[0];
        return transfer(from, to, 1 + (n % 7));
    });
    await Promise.all(transfers);
}
await thousand((from, to, amount) => bank.transfer(from, to, amount));
console.log(`with the comment: 1000 transfers, a total of ${bank.total}`);
const careless = new Bank({ alice: 1_000, bob: 1_000, carol: 1_000 });
await thousand((from, to, amount) => careless.transferCarelessly(from, to, amount));
console.log(`without it: ${careless.total === 3_000 ? "the same total" : "another total"}`);
await shutdown();
