// `npm start`: shows a method as written and as woven, and then runs the order controller.
import { readFile } from "node:fs/promises";
import { placeOfLocks } from "./order-controller/place.mjs";

const METHOD = "testRetry";

async function method(fileName: string): Promise<string[]> {
  const lines = (await readFile(new URL(`order-controller/${fileName}`, import.meta.url), "utf8")).split(
    "\n",
  );
  const head = lines.findIndex((line) => line.includes(`async ${METHOD}(`));
  const end = lines.findIndex((line, index) => index > head && /^ {2,4}\}$/.test(line));
  const indent = lines[head]?.search(/\S/) ?? 0;
  return lines.slice(head - 1, end + 1).map((line) => line.slice(indent));
}

function beside(left: readonly string[], right: readonly string[]): string[] {
  const width = Math.max(...left.map((line) => line.length));
  return Array.from({ length: Math.max(left.length, right.length) }, (_, index) =>
    `${(left[index] ?? "").padEnd(width)}  │  ${right[index] ?? ""}`.trimEnd(),
  );
}

const written = ["You write", "", ...(await method("order-controller.mts"))];
const woven = ["tspc emits", "", ...(await method("order-controller.mjs"))];
const sideBySide = beside(written, woven);
const isWide = Math.max(...sideBySide.map((line) => line.length)) <= (process.stdout.columns ?? Infinity);
console.log((isWide ? sideBySide : [...written, "", ...woven]).join("\n"));

const { name, options } = placeOfLocks();
const hint = options.store === undefined ? "" : " (set REDIS_URL or POSTGRES_URL for a real server)";
console.log(`\nRunning the order controller on ${name}${hint}:\n`);
await import("./order-controller/main.mjs");
