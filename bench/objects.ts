/**
 * Lists the objects of a held lock and of a waiting call. It compares heap snapshots with and without many of them, and divides by their
 * number. The body of the call and the promises of its caller do not belong to Lockweave, and are left out as far as possible.
 *
 *     npm run bench -- objects [how many]
 */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { writeHeapSnapshot } from "node:v8";
import { execFileSync } from "node:child_process";
import type * as Lockweave from "../runtime";
import { startRedis } from "../test/support/redis-server";
import { heapBytes } from "./heap";

const COUNT = 5_000;
const LEAST_SHOWN_BYTES = 8;
const SETTLE_MS = 3_000;

interface Snapshot {
  readonly snapshot: { readonly meta: { readonly node_fields: string[]; readonly node_types: [string[]] } };
  readonly nodes: readonly number[];
  readonly strings: readonly string[];
}

interface Tally {
  count: number;
  bytes: number;
}

/** Returns count and bytes for each kind of object. */
function tallies(path: string): Map<string, Tally> {
  const { snapshot, nodes, strings } = JSON.parse(readFileSync(path, "utf8")) as Snapshot;
  const fields = snapshot.meta.node_fields;
  const [kinds] = snapshot.meta.node_types;
  const at = (node: number, field: string): number => nodes[node + fields.indexOf(field)] ?? NaN;
  const all = new Map<string, Tally>();
  for (let node = 0; node < nodes.length; node += fields.length) {
    const kind = kinds[at(node, "type")] ?? "";
    if (kind === "code" || kind === "object shape") continue; // The engine creates and drops these at any time.
    const name = kind === "object" || kind === "hidden" ? (strings[at(node, "name")] ?? "") : kind;
    const tally = all.get(name) ?? { count: 0, bytes: 0 };
    tally.count += 1;
    tally.bytes += at(node, "self_size");
    all.set(name, tally);
  }
  return all;
}

async function snapshotIn(folder: string, name: string): Promise<Map<string, Tally>> {
  await heapBytes(); // Collects unreachable objects first.
  return tallies(writeHeapSnapshot(join(folder, name)));
}

const SITUATIONS: Readonly<Record<string, (runtime: typeof Lockweave, key: string) => void>> = {
  "a lock that is held": ({ obtain }, key) => void obtain(`held:${key}`),
  "a call that waits": ({ withLock }, key) => void withLock(`taken:${key}`, PATIENT, NOTHING).catch(NOTHING),
};
const PATIENT = { retryTimes: 100 };
const NOTHING = async (): Promise<void> => {};

async function measure(situation: string, count: number, url: string): Promise<void> {
  const runtime = require("../dist/runtime/index") as typeof Lockweave;
  runtime.configure({ redis: url, woven: false });
  const create = SITUATIONS[situation];
  create?.(runtime, "first");
  await pause(SETTLE_MS);
  const folder = mkdtempSync(join(tmpdir(), "objects-"));
  const before = await snapshotIn(folder, "before.heapsnapshot");
  for (let nth = 0; nth < count; nth += 1) create?.(runtime, String(nth));
  await pause(SETTLE_MS);
  const after = await snapshotIn(folder, "after.heapsnapshot");
  rmSync(folder, { recursive: true });
  const each = [...after]
    .map(([name, { count: number, bytes }]) => ({
      name,
      count: (number - (before.get(name)?.count ?? 0)) / count,
      bytes: (bytes - (before.get(name)?.bytes ?? 0)) / count,
    }))
    .toSorted((one, other) => other.bytes - one.bytes);
  console.log(`\n${situation}: ${Math.round(each.reduce((sum, { bytes }) => sum + bytes, 0))} bytes`);
  for (const { name, count: number, bytes } of each) {
    if (bytes < LEAST_SHOWN_BYTES) break;
    console.log(`${bytes.toFixed(0).padStart(6)}  ${number.toFixed(1)} x ${name}`);
  }
}

async function main(args: readonly string[]): Promise<void> {
  if (args[0] === "--look") {
    await measure(String(args[1]), Number(args[2]), String(args[3]));
    process.exit();
  }
  const count = Number(args[0] ?? COUNT);
  const server = await startRedis();
  const others = server.client().pipeline();
  for (const nth of ["first", ...Array(count).keys()])
    others.set(`taken:${nth}`, "somebody else", "PX", 600_000);
  await others.exec();
  for (const situation of Object.keys(SITUATIONS)) {
    const own = ["--expose-gc", "--require", "ts-node/register/transpile-only", __filename];
    execFileSync(process.execPath, [...own, "--look", situation, String(count), server.url], {
      stdio: "inherit",
    });
  }
  await server.stop();
}

void main(process.argv.slice(2));
