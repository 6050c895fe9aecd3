import test from "ava";
import { bundlerNamed, projectOf } from "./bundlers";

// When the file with `configure()` is saved, a development server runs it again in the same process.

const configuring = (
  version: number,
  defaults: string,
  more = "",
): string => `import { configure, memoryStore } from "lockweave";
${more}
configure({ store: memoryStore(), defaults: ${defaults} });
export const version = ${version};
export { pay } from "./pay";
`;

const PAY = `import { currentLock } from "lockweave";

/** @redisLock businessFlag=pay keyName=id */
export async function pay(id: string, work: () => void | Promise<void>): Promise<boolean> {
  await work();
  return currentLock().fencingToken !== undefined;
}
`;

const SERVER = `import fs from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import lockweave from "lockweave/vite";
import { createServer } from "vite";

const FILE = "src/hooks.server.ts";
const texts = JSON.parse(fs.readFileSync("texts.json", "utf8"));
const server = await createServer({
  appType: "custom",
  configFile: false,
  logLevel: "silent",
  server: { middlewareMode: true, ws: false },
  plugins: [lockweave()],
});
const load = () => server.ssrLoadModule("/" + FILE);

/** Saves the file, as often as a server that has just begun to watch it needs, and runs what the server has of it then. */
async function save(text, version) {
  fs.writeFileSync(FILE, text);
  for (;;) {
    const loaded = await load();
    if (loaded.version === version) return loaded;
    await pause(50);
    fs.utimesSync(FILE, new Date(), new Date());
  }
}

const said = [];
const first = await load();
said.push(await first.pay("A1", () => {}));

let end;
const held = first.pay("A1", () => {
  said.push("begins");
  return new Promise((resolve) => (end = () => { said.push("ends"); resolve(); }));
});
while (end === undefined) await pause(1);
const second = await save(texts[0], 2);
const waiting = second.pay("A1", () => void said.push("the next begins"));
said.push("another key: " + (await second.pay("B2", () => {})));
end();
said.push(await held, await waiting, await second.pay("A1", () => {}));

const third = await save(texts[1], 3);
said.push(await third.pay("A1", () => {}));
await server.close();
fs.writeFileSync("said.json", JSON.stringify(said));
`;

test("Vite in development: a saved configure() replaces the configuration when no lock is held", async (t) => {
  const project = await projectOf(bundlerNamed("Vite"), {
    "src/hooks.server.ts": configuring(1, "{}"),
    "src/pay.ts": PAY,
    "texts.json": JSON.stringify([
      configuring(2, "{ fencing: true }"),
      configuring(3, "{}", "// A line more, above the call.\n\n"),
    ]),
    "server.mjs": SERVER,
  });
  const { code, stderr } = await project.run("server.mjs");
  t.is(code, 0, stderr);
  t.deepEqual(JSON.parse(await project.read("said.json")), [
    false,
    "begins",
    "another key: false",
    "ends",
    "the next begins",
    false,
    false,
    true,
    false,
  ]);
});
