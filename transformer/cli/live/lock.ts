import { agrees, NOT_AGREED } from "../agrees";
import { openHome, type Home } from "./home";
import { holderText, lockTable } from "./rows";
import { Survey, type LockRow, type SurveyOptions } from "./survey";

type Runtime = typeof import("../../../runtime/index");

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
    const question = how.now
      ? "Free it at once? A body may be at work under it, and another one would run beside it."
      : "Revoke it? Its holder is told, and its key is free when its body has ended, or its time is over.";
    if (!how.isAgreed && !(await agrees(question))) {
      process.stdout.write("Nothing was changed. With `--yes` nobody is asked.\n");
      return NOT_AGREED;
    }
    const { configure, forceRelease, shutdown } = require("lockweave") as Runtime;
    configure({
      redis: home.redis,
      woven: false,
      logger: { warn: (line) => void process.stderr.write(`${line}\n`) },
    });
    const taken = await forceRelease(key, { now: how.now });
    await shutdown({ patience: "0s" });
    const names = lock.holders.map(holderText).join(", ");
    process.stdout.write(
      taken.length === 0
        ? "Meanwhile somebody else holds it, or nobody: nothing was changed.\n"
        : `${how.now ? "Freed" : "Revoked"}: it was held by ${names}.\n`,
    );
    return taken.length === 0 ? 1 : 0;
  } finally {
    home.close();
  }
}

async function lookAt(home: Home, key: string, options: SurveyOptions): Promise<LockRow | undefined> {
  const survey = new Survey(options);
  return await survey.lookAtOne(home, key);
}
