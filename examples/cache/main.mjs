// Readers run together, and a writer runs alone. A reader sees the old prices or the new ones, but never a mixture.
import { configure, memoryStore, shutdown } from "lockweave";
import { PriceList } from "./price-list.mjs";
const redis = process.env["REDIS_URL"];
configure(redis === undefined ? { store: memoryStore() } : { redis }, "woven", "lockweave/examples/cache/main.mts");
const list = new PriceList(console.log);
await list.replace({ tea: 1, cup: 2, pot: 3 });
const read = () => list.total(["tea", "cup", "pot"]);
const before = [read(), read(), read(), read()];
await before[0]; // The other readers may still run. The writer waits for them.
const replaced = list.replace({ tea: 10, cup: 20, pot: 30 });
const after = replaced.then(() => Promise.all([read(), read()]));
const [early, late] = [await Promise.all(before), await after];
console.log(`before: ${early.join(", ")}`);
console.log(`after: ${late.join(", ")}`);
console.log(`several read at once: ${list.readers.most > 1}`);
await shutdown();
