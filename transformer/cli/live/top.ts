import { isTerminal, print, printJson, printScreen, safe, terminalSize } from "../printer";
import { openHome, type Deployment } from "./deployment";
import { looks } from "./looks";
import { lockTable, lookText } from "./rows";
import { NAMES_OF_ONE_LOOK, LockScanner, type SurveyOptions } from "./lock-scanner";

const REFRESHED_EVERY_MS = 1_000;
const LINES_BESIDE_THE_TABLE = 5;

/**
 * Shows held locks and waiters: repeatedly on a terminal, otherwise once.
 *
 * @throws {UsageError} if the servers cannot be read
 */
export async function top(urls: readonly string[], options: SurveyOptions, json: boolean): Promise<number> {
  const home = await openHome(urls);
  const survey = new LockScanner(options);
  try {
    if (isTerminal() && !json) await live(survey, home);
    const look = await survey.look(home, NAMES_OF_ONE_LOOK);
    if (json) printJson(look, 2);
    else
      print(lookText(look), ...(look.locks.length === 0 ? [] : [safe``, ...lockTable(look.locks, Infinity)]));
    return 0;
  } finally {
    home.close();
  }
}

/** Refreshes the terminal until the process ends. */
async function live(survey: LockScanner, home: Deployment): Promise<void> {
  for await (const seen of looks(survey, home, REFRESHED_EVERY_MS)) {
    const room = Math.max(1, terminalSize().rows - LINES_BESIDE_THE_TABLE);
    if ("trouble" in seen) printScreen(safe`${seen.trouble}`);
    else printScreen(lookText(seen.look), safe``, ...lockTable(seen.look.locks, room));
  }
}
