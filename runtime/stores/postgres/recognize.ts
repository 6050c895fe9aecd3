// Recognizes URLs and clients of PostgreSQL in options for something else. It imports none of the other files for PostgreSQL.

export function isPostgresUrl(text: string): boolean {
  return /^postgres(?:ql)?:\/\//i.test(text);
}

/** Returns what the value is, for a message, if it belongs to PostgreSQL. */
export function describePostgresValue(value: unknown): string | undefined {
  if (typeof value === "string") return isPostgresUrl(value) ? "a postgres:// URL" : undefined;
  if (typeof value === "function") return "unsafe" in value ? "a client of postgres.js" : undefined;
  if (typeof value !== "object" || value === null) return undefined;
  if ("totalCount" in value && "query" in value) return "a Pool of pg";
  return "url" in value && typeof value.url === "string" ? describePostgresValue(value.url) : undefined;
}
