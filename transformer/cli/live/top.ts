import { setTimeout as sleep } from "node:timers/promises";
import { openHome } from "./home";
import { lockTable, lookText } from "./rows";
import { Survey, type SurveyOptions } from "./survey";

const REFRESHED_EVERY_MS = 1_000;
const LINES_BESIDE_THE_TABLE = 5;
const CLEAR = "\u001B[2J\u001B[H";

/**
 * Shows who holds what, and who waits: on a terminal time and again until it is ended, otherwise once.
 *
 * @throws {UsageError} when the server cannot be looked at
 */
export async function top(urls: readonly string[], options: SurveyOptions, json: boolean): Promise<number> {
  const home = await openHome(urls);
  const survey = new Survey(options);
  try {
    const isLive = process.stdout.isTTY && !json;
    let look = await survey.look(home);
    // Nobody waits for a second look: this one is to be whole, as far as that takes no more than a few.
    for (let more = 0; !isLive && !look.isWhole && more < MOST_LOOKS_AT_ONCE; more += 1)
      look = await survey.look(home);
    if (json) process.stdout.write(`${JSON.stringify(look, undefined, 2)}\n`);
    else if (!isLive)
      process.stdout.write(
        lookText(look) + (look.locks.length > 0 ? `\n${lockTable(look.locks, Infinity)}` : ""),
      );
    while (isLive) {
      const room = Math.max(1, process.stdout.rows - LINES_BESIDE_THE_TABLE);
      process.stdout.write(`${CLEAR}${lookText(look)}\n${lockTable(look.locks, room)}`);
      await sleep(REFRESHED_EVERY_MS);
      look = await survey.look(home);
    }
    return 0;
  } finally {
    home.close();
  }
}

const MOST_LOOKS_AT_ONCE = 50;
