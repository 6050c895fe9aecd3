// Sends twelve mails at once over three connections.
import { configure, memoryStore, shutdown } from "lockweave";
import { Mailer } from "./mailer.mjs";

const redis = process.env["REDIS_URL"];
configure(redis === undefined ? { store: memoryStore() } : { redis });

const mailer = new Mailer();
const sent = await Promise.all(Array.from({ length: 12 }, (_, n) => mailer.send(`customer ${n}`)));
console.log(`${sent.length} mails over at most ${mailer.connections.most} connections`);
await shutdown();
