/** Whether it is a client of postgres.js. A reserved connection and a transaction have no options. */
export function isPostgresJs(client: unknown): boolean {
  const { unsafe, listen, options } = (client ?? {}) as Readonly<Record<string, unknown>>;
  return (
    typeof client === "function" &&
    typeof unsafe === "function" &&
    typeof listen === "function" &&
    typeof options === "object"
  );
}
