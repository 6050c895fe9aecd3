// One process of the shop: `service.mjs careless|locked`. Sends its port to the parent process.
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { Redis } from "ioredis";
import { configure, shutdown } from "lockweave";
import { CarelessShop, Shop } from "./shop.mjs";

const redis = new Redis(process.env["REDIS_URL"] ?? "");
configure({ redis });
const shop = process.argv[2] === "locked" ? new Shop(redis) : new CarelessShop(redis);

const server = createServer(async (request, response) => {
  try {
    const isSold = await shop.sell((request.url ?? "/").slice(1));
    response.writeHead(isSold ? 200 : 410).end();
  } catch (error) {
    response.writeHead(503).end(String(error));
  }
});
server.listen(0, "127.0.0.1", () => process.send?.((server.address() as AddressInfo).port));

process.once("disconnect", async () => {
  server.close();
  await shutdown();
  redis.disconnect();
});
