import { writeSync } from "node:fs";

/** Writes one line to the test synchronously, so that it survives a crash of this process. */
export function report(line: object): void {
  writeSync(1, `${JSON.stringify(line)}\n`);
}
