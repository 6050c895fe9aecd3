import { agrees, NOT_AGREED, print, printJson, safe } from "../printer";
import { openHome, type Deployment } from "./deployment";
import { lockTable } from "./rows";
import { LockScanner, type SeenLock, type SurveyOptions } from "./lock-scanner";
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
    if (json) printJson(lock ?? { key, state: "free", holders: [], waiting: 0 }, 2);
    else if (lock === undefined) print(safe`${key} is free, and nobody waits for it.`);
    else print(...lockTable([lock], 1));
    return 0;
  } finally {
    home.close();
  }
}

/** Forces the release of a lock after the user confirms. It acts only on the hold that the question showed. */
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
      print(safe`${nothing ?? ""}`);
      return seen === undefined || seen.row.state === "free" ? 0 : 1;
    }
    print(...lockTable([seen.row], 1));
    if (!how.isAgreed && !(await agrees(safe`${takeQuestion(how.now)}`))) {
      print(safe`Nothing was changed. With \`--yes\` nobody is asked.`);
      return NOT_AGREED;
    }
    const isTaken = await take(home, options.prefix, seen, how.now);
    print(safe`${isTaken ? takenText(seen.row, how.now) : CHANGED_MEANWHILE}`);
    return isTaken ? 0 : 1;
  } finally {
    home.close();
  }
}

async function lookAt(home: Deployment, key: string, options: SurveyOptions): Promise<SeenLock | undefined> {
  const survey = new LockScanner(options);
  return await survey.lookAtOne(home, key);
}
