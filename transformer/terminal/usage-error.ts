/** The command line is invalid, or the project that it names cannot be used. */
export class UsageError extends Error {}
