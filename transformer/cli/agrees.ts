import { createInterface } from "node:readline/promises";

/** Whether somebody who sits there says yes. */
export async function agrees(question: string): Promise<boolean> {
  if (!process.stdin.isTTY || !process.stdout.isTTY) return false;
  const terminal = createInterface({ input: process.stdin, output: process.stdout });
  const answer = await terminal.question(`${question} [y/N] `);
  terminal.close();
  return /^y(?:es)?$/i.test(answer.trim());
}

/** The exit code where nobody said yes, and so nothing was changed. */
export const NOT_AGREED = 3;
