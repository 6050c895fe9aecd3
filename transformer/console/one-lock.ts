import { confirms, NOT_AGREED, print, printJson, safe } from "../terminal/printer";
import { openDeployment, type Target } from "./open-deployment";
import { lockTable } from "./lock-table";
import { LockScanner } from "./lock-scanner";
import {
  CHANGED_MEANWHILE,
  whyNotReleasable,
  releaseByForce,
  releasedText,
  releaseQuestion,
} from "./force-release";

/** Shows one lock. */
export async function inspectLock(target: Target, key: string, json: boolean): Promise<number> {
  const deployment = await openDeployment(target);
  try {
    const lock = (await new LockScanner(deployment).lookAtOne(key))?.row;
    if (json) printJson(lock ?? { key, state: "free", holders: [], waiting: 0 }, 2);
    else if (lock === undefined) print(safe`${key} is free, and nobody waits for it.`);
    else print(...lockTable([lock], 1));
    return 0;
  } finally {
    deployment.close();
  }
}

/** Forces the release of a lock after the user confirms. It acts only on the hold that the question showed. */
export async function releaseLock(
  target: Target,
  key: string,
  how: { readonly now: boolean; readonly isAgreed: boolean },
): Promise<number> {
  const deployment = await openDeployment(target);
  try {
    const seen = await new LockScanner(deployment).lookAtOne(key);
    const reason = whyNotReleasable(key, seen, how.now);
    if (seen === undefined || reason !== undefined) {
      print(safe`${reason ?? ""}`);
      return seen === undefined || seen.row.state === "free" ? 0 : 1;
    }
    print(...lockTable([seen.row], 1));
    if (!how.isAgreed && !(await confirms(safe`${releaseQuestion(seen.row, how.now)}`))) {
      print(safe`Nothing was changed. To confirm in advance, use \`--yes\`.`);
      return NOT_AGREED;
    }
    const isReleased = await releaseByForce(deployment, seen, how.now);
    print(safe`${isReleased ? releasedText(seen.row, how.now) : CHANGED_MEANWHILE}`);
    return isReleased ? 0 : 1;
  } finally {
    deployment.close();
  }
}
