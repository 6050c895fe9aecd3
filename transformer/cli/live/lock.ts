import { agrees, NOT_AGREED } from "../agrees";
import { openHome, type Home } from "./home";
import { holderText, lockTable } from "./rows";
import type { LockRow } from "./look";
import { Survey, type SurveyOptions } from "./survey";
import { take, takeQuestion } from "./take";

/** Shows one lock. */
export async function inspectLock(
  urls: readonly string[],
  key: string,
  options: SurveyOptions,
  json: boolean,
): Promise<number> {
  const home = await openHome(urls);
  try {
    const lock = await lookAt(home, key, options);
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

/**
 * Takes a lock from those who hold it, once that is agreed to.
 *
 * @param now free the key at once, though a body may be at work under it
 */
export async function releaseLock(
  urls: readonly string[],
  key: string,
  options: SurveyOptions,
  how: { readonly now: boolean; readonly isAgreed: boolean },
): Promise<number> {
  const home = await openHome(urls);
  try {
    const lock = await lookAt(home, key, options);
    if (lock === undefined || lock.state === "free") {
      process.stdout.write(`${key} is free: there is nothing to release.\n`);
      return 0;
    }
    process.stdout.write(lockTable([lock], 1));
    if (!how.isAgreed && !(await agrees(takeQuestion(how.now)))) {
      process.stdout.write("Nothing was changed. With `--yes` nobody is asked.\n");
      return NOT_AGREED;
    }
    const isTaken = await take(home, options.prefix, lock, how.now);
    const names = lock.holders.map(holderText).join(", ");
    process.stdout.write(
      !isTaken
        ? "Meanwhile somebody else holds it, or nobody: nothing was changed.\n"
        : `${how.now ? "Freed" : "Revoked"}: it was held by ${names}.\n`,
    );
    return isTaken ? 0 : 1;
  } finally {
    home.close();
  }
}

async function lookAt(home: Home, key: string, options: SurveyOptions): Promise<LockRow | undefined> {
  const survey = new Survey(options);
  return await survey.lookAtOne(home, key);
}
