import { readFileSync } from "node:fs";
import { join } from "node:path";

/** The tagged function. Its body runs until the gate at the URL answers. */
export const SERVICE = `/** @redisLock businessFlag=starter keyName=id */
export async function pay(id: string, gate: string): Promise<string> {
  await fetch(gate);
  return \`\${id} is paid\`;
}
`;

/** The same with a parameter that does not exist. */
export function withWrongTag(text: string): string {
  return text.replace("keyName=id", "keyName=nobody");
}

/** A server without a framework: `/pay` calls the tagged function. */
export function server(from: string): string {
  return `import { createServer } from "node:http";
import { configure } from "lockweave";
import { pay } from "${from}";

configure({ redis: process.env.REDIS_URL ?? "redis://localhost:6379" });

createServer(async (request, response) => {
  const { pathname, searchParams } = new URL(request.url ?? "/", "http://localhost");
  response.end(pathname === "/pay" ? await pay("A1", searchParams.get("gate") ?? "") : "up");
}).listen(Number(process.env.PORT), "127.0.0.1");
`;
}

/** A program that calls the tagged function once. */
export function program(from: string): string {
  return `import { configure, shutdown } from "lockweave";
import { pay } from "${from}";

async function main(): Promise<void> {
  configure({ redis: process.env.REDIS_URL ?? "redis://localhost:6379" });
  console.log(await pay("A1", process.env.GATE ?? ""));
  await shutdown();
}

void main();
`;
}

/** Returns the text of a JSON file. */
export function json(value: unknown): string {
  return `${JSON.stringify(value, undefined, 2)}\n`;
}

/** Returns the code in docs/frameworks.md that names this file in its first line. */
export function documented(file: string): string {
  const page = readFileSync(join(__dirname, "../../docs/frameworks.md"), "utf8");
  const [, code = ""] = page.split(`\`\`\`ts\n// ${file}\n`);
  const [text = ""] = code.split("```");
  if (text === "") throw new Error(`docs/frameworks.md has no ${file}`);
  return text;
}
