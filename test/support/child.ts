import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Writable } from "node:stream";
import { NODE } from "./node";

/** A real process that runs a script of `test/faults/children`, and sends reports as lines of JSON. */
export interface Child<Report> {
  /** The reports so far. */
  readonly reports: readonly Report[];
  /** What it wrote to stderr. */
  readonly complaints: string;
  /** Resolves to the first report that fits, which may already be there. */
  reported(fits: (report: Report) => boolean): Promise<Report>;
  /** Writes a line to its stdin. */
  tell(line: string): void;
  signal(signal: NodeJS.Signals): void;
  /** Resolves when it has exited. */
  readonly ended: Promise<{ readonly code: number | null; readonly signal: NodeJS.Signals | null }>;
  /** Resolves when it has exited and its last report has arrived. */
  readonly closed: Promise<void>;
  /** Kills it, unless it has exited. */
  kill(): Promise<void>;
}

/**
 * Runs the script, and a guard that kills it if descriptor 3 closes without a message. So no child outlives this process,
 * not even a stopped one.
 */
const TIED_TO_US = '(read -r _ <&3 || kill -9 $$) & exec "$@" 3<&-';

/**
 * @param onReport called with each report when it arrives
 * @param environment variables that it has in addition to ours
 */
export function startChild<Report>(
  script: string,
  configuration: unknown,
  onReport: (report: Report) => void = () => {},
  environment: Readonly<Record<string, string>> = {},
): Child<Report> {
  const path = join(__dirname, "../faults/children", script);
  const child = spawn("sh", ["-c", TIED_TO_US, "child", ...NODE, path, JSON.stringify(configuration)], {
    stdio: ["pipe", "pipe", "pipe", "pipe"],
    env: { ...process.env, ...environment },
  });
  const tie = child.stdio[3] as Writable;
  const reports: Report[] = [];
  const expectations = new Set<(report: Report) => void>();
  let complaints = "";
  for (const stream of [child.stdin, tie]) stream.on("error", () => {}); // It has exited, and `ended` resolves.
  child.stderr.setEncoding("utf8").on("data", (text: string) => (complaints += text));
  createInterface({ input: child.stdout }).on("line", (line) => {
    const report = JSON.parse(line) as Report;
    reports.push(report);
    onReport(report);
    for (const expect of expectations) expect(report);
  });
  const ended = once(child, "exit").then(([code, signal]: unknown[]) => {
    tie.end("ended\n");
    return { code: code as number | null, signal: signal as NodeJS.Signals | null };
  });
  const closed = once(child, "close").then(() => {});
  return {
    reports,
    get complaints() {
      return complaints;
    },
    async reported(fits) {
      const here = reports.find(fits);
      if (here !== undefined) return here;
      const report = await Promise.race([
        new Promise<Report>((resolve) => {
          const expect = (candidate: Report): void => {
            if (!fits(candidate)) return;
            expectations.delete(expect);
            resolve(candidate);
          };
          expectations.add(expect);
        }),
        closed,
      ]);
      if (report === undefined) throw new Error(`the child ended before it reported that: ${complaints}`);
      return report;
    },
    tell: (line) => void child.stdin.write(`${line}\n`),
    signal: (signal) => void child.kill(signal),
    ended,
    closed,
    async kill() {
      child.kill("SIGKILL");
      await ended;
    },
  };
}
