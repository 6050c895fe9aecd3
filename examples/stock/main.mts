// Four processes sell one stock to more customers than there are goods.
import { fork, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { Redis } from "ioredis";

const STOCK = 100;
const REQUESTS = 200;
const PROCESSES = 4;
const SKU = "gold-watch";

const url = process.env["REDIS_URL"];
if (url === undefined) {
  console.error(
    "This example needs a real server: REDIS_URL=redis://localhost:6379 node examples/stock/main.mjs",
  );
  process.exit(1);
}
const redis = new Redis(url);

interface Sale {
  sold: number;
  refused: number;
  left: number;
}

async function sale(kind: "careless" | "locked"): Promise<Sale> {
  await redis.set(`stock:${SKU}`, STOCK);
  const services = Array.from({ length: PROCESSES }, () =>
    fork(fileURLToPath(new URL("service.mjs", import.meta.url)), [kind]),
  );
  try {
    const ports = await Promise.all(services.map(portOf));
    const answers = await Promise.all(
      Array.from({ length: REQUESTS }, (_, index) =>
        fetch(`http://127.0.0.1:${ports[index % PROCESSES]}/${SKU}`),
      ),
    );
    const count = (status: number): number => answers.filter((answer) => answer.status === status).length;
    return { sold: count(200), refused: count(410), left: Number(await redis.get(`stock:${SKU}`)) };
  } finally {
    for (const service of services) service.disconnect();
  }
}

async function portOf(service: ChildProcess): Promise<number> {
  const ended = new AbortController();
  service.once("exit", () => ended.abort(new Error("a service ended before it sent its port")));
  const [port] = (await once(service, "message", { signal: ended.signal })) as [number];
  return port;
}

const show = ({ sold, refused, left }: Sale): string =>
  `${STOCK} in stock, ${REQUESTS} requests: ${sold} sold, ${refused} refused, ${left} left in the record`;

console.log(`without the comment: ${show(await sale("careless"))}`);
console.log(`with the comment:    ${show(await sale("locked"))}`);
redis.disconnect();
