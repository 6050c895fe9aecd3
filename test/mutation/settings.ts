/** The settings of the processes that run tests, as JSON in the environment variable {@link SETTINGS}. */
export interface Settings {
  readonly root: string;
  /** The directory of the compiled code, with the same paths. */
  readonly mirror: string;
  /** The source file with a mutant, and the path of its compiled code. */
  readonly mutant?: { readonly file: string; readonly compiled: string } | undefined;
  /** The file to which the reached regions are written. */
  readonly reached?: string;
}

const SETTINGS = "LOCKWEAVE_MUTATION";

export function settings(): Settings {
  return JSON.parse(process.env[SETTINGS] ?? "") as Settings;
}

export function asEnvironment(passed: Settings): Record<string, string> {
  return { [SETTINGS]: JSON.stringify(passed) };
}
