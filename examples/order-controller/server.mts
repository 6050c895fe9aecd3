import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import type { Order, OrderController } from "./order-controller.mjs";

/** Serves the controller over HTTP, on a free port of this machine. */
export async function serve(controller: OrderController): Promise<{ server: Server; url: string }> {
  const server = createServer(async (request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? "/", "http://localhost");
    const body = await text(request);
    const orderNo = searchParams.get("orderNo") ?? "";
    const routes: Record<string, () => Promise<string>> = {
      "/testValue": () => controller.testValue(orderNo),
      "/testBean": () => controller.testBean(JSON.parse(body) as Order),
      "/testJson": () => controller.testJson(body),
      "/testRetry": () => controller.testRetry(orderNo),
    };
    try {
      const answer = await routes[pathname]?.();
      response.writeHead(answer === undefined ? 404 : 200).end(answer);
    } catch (error) {
      response.writeHead(409).end(error instanceof Error ? error.message : String(error));
    }
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return { server, url: `http://127.0.0.1:${port}` };
}
