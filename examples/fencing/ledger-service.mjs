// The ledger in its own process, with a file for each account: `ledger-service.mjs <directory>`.
// Sends its port to the parent process.
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
const [, , directory = "."] = process.argv;
const fileOf = (name) => join(directory, `${encodeURIComponent(name)}.json`);
function load(name) {
    if (!existsSync(fileOf(name)))
        return { balance: 100, token: 0 };
    return JSON.parse(readFileSync(fileOf(name), "utf8"));
}
/** Rejects an old token. No other request can run between the comparison and the write, because both are synchronous. */
function save(name, balance, token) {
    const last = load(name).token;
    if (token !== undefined && token < last)
        return `token ${token} is older than ${last}`;
    writeFileSync(fileOf(name), JSON.stringify({ balance, token: token ?? last }));
    return undefined;
}
const server = createServer((request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? "/", "http://localhost");
    const name = decodeURIComponent(pathname.slice(1));
    if (request.method === "GET")
        return response.end(String(load(name).balance));
    const token = searchParams.get("token");
    const refusal = save(name, Number(searchParams.get("balance")), token === null ? undefined : Number(token));
    return response.writeHead(refusal === undefined ? 204 : 409).end(refusal);
});
server.listen(0, "127.0.0.1", () => process.send?.(server.address().port));
process.once("disconnect", () => process.exit());
