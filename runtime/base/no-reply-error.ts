/** The store did not reply in time. Whether it ran the command is unknown. */
export class NoReplyError extends Error {
  override readonly name: string = "NoReplyError";
}
