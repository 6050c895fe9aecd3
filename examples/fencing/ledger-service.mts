// The store, in a process of its own, with a file for each record: `ledger-service.mjs <directory>`.
// Tells its port to the process that forked it.
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";

interface Entry {
  balance: number;
  /** The token of the last write that had one. */
  token: number;
}

const [, , directory = "."] = process.argv;
const fileOf = (name: string): string => join(directory, `${encodeURIComponent(name)}.json`);

function load(name: string): Entry {
  if (!existsSync(fileOf(name))) return { balance: 100, token: 0 };
  return JSON.parse(readFileSync(fileOf(name), "utf8")) as Entry;
}

/** The whole of fencing. Nothing comes between the comparison and the write: this process does one at a time. */
function save(name: string, balance: number, token: number | undefined): string | undefined {
  const last = load(name).token;
  if (token !== undefined && token < last) return `token ${token} is older than ${last}`;
  writeFileSync(fileOf(name), JSON.stringify({ balance, token: token ?? last } satisfies Entry));
  return undefined;
}

const server = createServer((request, response) => {
  const { pathname, searchParams } = new URL(request.url ?? "/", "http://localhost");
  const name = decodeURIComponent(pathname.slice(1));
  if (request.method === "GET") return response.end(String(load(name).balance));
  const token = searchParams.get("token");
  const refusal = save(name, Number(searchParams.get("balance")), token === null ? undefined : Number(token));
  return response.writeHead(refusal === undefined ? 204 : 409).end(refusal);
});
server.listen(0, "127.0.0.1", () => process.send?.((server.address() as AddressInfo).port));

process.once("disconnect", () => process.exit());
