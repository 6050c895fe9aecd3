import type { Question, State } from "../state";

const STORED_AS = "lockweave token";
/** `lockweave ui` replies from memory, so a later reply means that its process hangs. */
const STATE_TIMEOUT_MS = 3_000;

/** Moves the token from the address into this tab's storage. On a shared screen, the address must not reveal it. */
export function takeToken(): void {
  const token = new URLSearchParams(location.hash.slice(1)).get("token");
  if (token === null) return;
  sessionStorage.setItem(STORED_AS, token);
  history.replaceState(undefined, "", location.pathname);
}

/**
 * Sends a request to the server.
 *
 * @throws {Error} with a message for the user
 */
async function ask<Reply>(path: string, body?: object, signal?: AbortSignal): Promise<Reply> {
  const response = await fetch(path, {
    ...(signal !== undefined && { signal }),
    headers: { authorization: `Bearer ${sessionStorage.getItem(STORED_AS) ?? ""}` },
    ...(body !== undefined && { method: "POST", body: JSON.stringify(body) }),
  }).catch(() => {
    if (signal?.aborted === true) throw new Error("`lockweave ui` does not reply.");
    throw new Error("`lockweave ui` has ended. Start it again, and open the address that it prints.");
  });
  const reply = (await response.json()) as Reply & { readonly error?: string };
  if (!response.ok) throw new Error(reply.error ?? response.statusText);
  return reply;
}

export function askState(find: string, lock: string | undefined): Promise<State> {
  const query = new URLSearchParams({ find, ...(lock !== undefined && { lock }) });
  return ask(`state?${query.toString()}`, undefined, AbortSignal.timeout(STATE_TIMEOUT_MS));
}

export function askRelease(key: string, now: boolean): Promise<Question | { readonly result: string }> {
  return ask("release", { key, now });
}

export function confirmRelease(confirmation: string): Promise<{ readonly result: string }> {
  return ask("confirm", { confirmation });
}
