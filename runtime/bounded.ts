import type { CancelTimer, Clock } from "./clock";

/** The store did not answer in time. What became of the command is unknown. */
export class NoReplyError extends Error {
  override readonly name = "NoReplyError";
}

/**
 * Sends the command. Its outcome, or `NoReplyError` after `timeoutMs`, whatever the client's own time-outs are.
 * An outcome that comes later goes to `late`.
 */
export function bounded<T>(
  clock: Clock,
  timeoutMs: number,
  send: () => Promise<T>,
  late: (outcome: T) => void = () => {},
): Promise<T> {
  return new Promise((resolve, reject) => {
    let timedOut = false;
    const cancel: CancelTimer = clock.after(timeoutMs, () => {
      timedOut = true;
      reject(new NoReplyError(`no reply from the store within ${Math.round(timeoutMs)} ms`));
    });
    const command = async (): Promise<T> => await send(); // A store that throws has rejected.
    command().then(
      (outcome) => {
        if (timedOut) return late(outcome);
        cancel();
        resolve(outcome);
      },
      (error: unknown) => {
        cancel();
        reject(error);
      },
    );
  });
}
