import { systemClock, type CancelTimer } from "../../../base/clock";
import { inRoot } from "../../../base/root-context";
import type { StateListeners } from "../client-port";

/** The time between a failed command and the check whether the server answers again. GLIDE itself waits for its connection during the check. */
const CHECK_AFTER_MS = 100;

/**
 * Whether commands reach the server. GLIDE has no event for a connection that closes or opens. So the connection counts as down from the
 * first command that fails without a reply until the next command that gets one.
 */
export class GlideState {
  isUp = true;
  readonly #check: () => Promise<unknown>;
  readonly #listeners = new Set<StateListeners>();
  #cancel: CancelTimer | undefined;
  #isClosed = false;

  /** @param check sends a command that changes nothing, and reports its outcome here */
  constructor(check: () => Promise<unknown>) {
    this.#check = check;
  }

  /** Calls the listeners in the root context. Returns a function that removes them. */
  listen(listeners: StateListeners): () => void {
    this.#listeners.add(listeners);
    return () => this.#listeners.delete(listeners);
  }

  /** Records that a command got a reply. */
  heard(): void {
    if (!this.isUp) this.#set(true);
  }

  /** Records that a command failed without a reply. */
  failed(): void {
    if (this.#isClosed) return;
    if (this.isUp) this.#set(false);
    inRoot(() => {
      this.#cancel ??= systemClock.afterInBackground(CHECK_AFTER_MS, () => {
        this.#cancel = undefined;
        this.#check().catch(() => {});
      });
    });
  }

  close(): void {
    this.#isClosed = true;
    this.#cancel?.();
    this.#listeners.clear();
  }

  #set(isUp: boolean): void {
    this.isUp = isUp;
    if (isUp) this.#cancel?.();
    if (isUp) this.#cancel = undefined;
    inRoot(() => {
      for (const { up, down } of this.#listeners) (isUp ? up : down)?.();
    });
  }
}
