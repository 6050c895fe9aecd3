import { createServer } from "node:http";
import { text } from "node:stream/consumers";
/** Serves the controller over HTTP, on a free port of this machine. */
export async function serve(controller) {
    const server = createServer(async (request, response) => {
        const { pathname, searchParams } = new URL(request.url ?? "/", "http://localhost");
        const body = await text(request);
        const orderNo = searchParams.get("orderNo") ?? "";
        const routes = {
            "/testValue": () => controller.testValue(orderNo),
            "/testBean": () => controller.testBean(JSON.parse(body)),
            "/testJson": () => controller.testJson(body),
            "/testRetry": () => controller.testRetry(orderNo),
        };
        try {
            const answer = await routes[pathname]?.();
            response.writeHead(answer === undefined ? 404 : 200).end(answer);
        }
        catch (error) {
            response.writeHead(409).end(error instanceof Error ? error.message : String(error));
        }
    });
    await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
    const { port } = server.address();
    return { server, url: `http://127.0.0.1:${port}` };
}
