import { subscribe, unsubscribe } from "node:diagnostics_channel";
import type { ExecutionContext } from "ava";
import type { LockEvents } from "../../runtime/lock/events";

/**
 * Runs `act` once, inside the next event of this name for the key, like a subscriber in an application.
 *
 * @param matches selects the event, if it is not the first
 */
export function inTheMiddleOf<Name extends keyof LockEvents>(
  t: ExecutionContext,
  name: Name,
  key: string,
  act: () => void,
  matches: (event: LockEvents[Name]) => boolean = () => true,
): void {
  const stop = (): boolean => unsubscribe(name, listen);
  const listen = (message: unknown): void => {
    const event = message as LockEvents[Name];
    if (event.key !== key || !matches(event)) return;
    stop();
    act();
  };
  subscribe(name, listen);
  t.teardown(() => void stop());
}
