/** The command line, or the project that it names, is not one that can be worked with. */
export class UsageError extends Error {}
