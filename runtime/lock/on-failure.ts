import { LockOptionError, type LockWaitTimeoutError } from "../base/errors";
import { formatValue } from "../base/format-value";
import { fieldsOf, type LockEvent } from "./events";

/**
 * Handles a lock that was not free within the wait budget. Runs in the async context of the call, after the call has left the queue and
 * released all its keys. The call waits for a returned promise.
 *
 * @param error the error that the call throws, unless this function throws another one
 * @param lock the busy lock
 */
export type FailureHandler = (error: LockWaitTimeoutError, lock: LockEvent) => void | PromiseLike<void>;

/** @throws {LockOptionError} if the value of `configure({ onFailure })` is not a function */
export function assertHandler(handler: unknown): void {
  if (handler === undefined || typeof handler === "function") return;
  throw new LockOptionError(
    `Expected \`onFailure\` of configure() to be a function, got ${formatValue(handler)}. Fix: to skip the body by default, set \`onFailure\` in the plugin's \`defaults\``,
  );
}

/** Throws the error of the handler, or else the timeout. */
export async function failWith(
  timeout: LockWaitTimeoutError,
  lock: LockEvent,
  handler: FailureHandler,
): Promise<never> {
  await handler(timeout, fieldsOf(lock));
  throw timeout;
}
