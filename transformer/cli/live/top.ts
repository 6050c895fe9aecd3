import { openHome, type Home } from "./home";
import { lockTable, lookText } from "./rows";
import type { Look } from "./look";
import { looks } from "./looks";
import { Survey, type SurveyOptions } from "./survey";

const REFRESHED_EVERY_MS = 1_000;
const LINES_BESIDE_THE_TABLE = 5;
const CLEAR = "\u001B[2J\u001B[H";
const MOST_LOOKS_AT_ONCE = 50;

/**
 * Shows who holds what, and who waits: on a terminal time and again until it is ended, otherwise once.
 *
 * @throws {UsageError} when the server cannot be looked at
 */
export async function top(urls: readonly string[], options: SurveyOptions, json: boolean): Promise<number> {
  const home = await openHome(urls);
  const survey = new Survey(options);
  try {
    if (process.stdout.isTTY && !json) await live(survey, home);
    process.stdout.write(textOf(await wholeLook(survey, home), json));
    return 0;
  } finally {
    home.close();
  }
}

/** Nobody waits for a second look: it is to be whole, as far as that takes no more than a few. */
async function wholeLook(survey: Survey, home: Home): Promise<Look> {
  let look = await survey.look(home);
  for (let more = 0; !look.isWhole && more < MOST_LOOKS_AT_ONCE; more += 1) look = await survey.look(home);
  return look;
}

function textOf(look: Look, json: boolean): string {
  if (json) return `${JSON.stringify(look, undefined, 2)}\n`;
  return look.locks.length === 0 ? lookText(look) : `${lookText(look)}\n${lockTable(look.locks, Infinity)}`;
}

/** Until the process is ended. */
async function live(survey: Survey, home: Home): Promise<void> {
  for await (const seen of looks(survey, home, REFRESHED_EVERY_MS)) {
    const room = Math.max(1, process.stdout.rows - LINES_BESIDE_THE_TABLE);
    const text =
      "trouble" in seen ? `${seen.trouble}\n` : `${lookText(seen.look)}\n${lockTable(seen.look.locks, room)}`;
    process.stdout.write(CLEAR + text);
  }
}
