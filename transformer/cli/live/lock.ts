import { agrees, NOT_AGREED } from "../agrees";
import { openHome, type Home } from "./home";
import { lockTable } from "./rows";
import { Survey, type SeenLock, type SurveyOptions } from "./survey";
import { CHANGED_MEANWHILE, nothingToTake, take, takenText, takeQuestion } from "./take";

/** Shows one lock. */
export async function inspectLock(
  urls: readonly string[],
  key: string,
  options: SurveyOptions,
  json: boolean,
): Promise<number> {
  const home = await openHome(urls);
  try {
    const lock = (await lookAt(home, key, options))?.row;
    if (json)
      process.stdout.write(
        `${JSON.stringify(lock ?? { key, state: "free", holders: [], waiting: 0 }, undefined, 2)}\n`,
      );
    else
      process.stdout.write(
        lock === undefined ? `${key} is free, and nobody waits for it.\n` : lockTable([lock], 1),
      );
    return 0;
  } finally {
    home.close();
  }
}

/** Takes a lock from its holders after a yes. It takes only what was shown before the question. */
export async function releaseLock(
  urls: readonly string[],
  key: string,
  options: SurveyOptions,
  how: { readonly now: boolean; readonly isAgreed: boolean },
): Promise<number> {
  const home = await openHome(urls);
  try {
    const seen = await lookAt(home, key, options);
    const nothing = nothingToTake(key, seen, how.now);
    if (seen === undefined || nothing !== undefined) {
      process.stdout.write(`${nothing ?? ""}\n`);
      return seen === undefined || seen.row.state === "free" ? 0 : 1;
    }
    process.stdout.write(lockTable([seen.row], 1));
    if (!how.isAgreed && !(await agrees(takeQuestion(how.now)))) {
      process.stdout.write("Nothing was changed. With `--yes` nobody is asked.\n");
      return NOT_AGREED;
    }
    const isTaken = await take(home, options.prefix, seen, how.now);
    process.stdout.write(`${isTaken ? takenText(seen.row, how.now) : CHANGED_MEANWHILE}\n`);
    return isTaken ? 0 : 1;
  } finally {
    home.close();
  }
}

async function lookAt(home: Home, key: string, options: SurveyOptions): Promise<SeenLock | undefined> {
  const survey = new Survey(options);
  return await survey.lookAtOne(home, key);
}
