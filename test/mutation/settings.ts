/** What the processes that run tests are told, as JSON in the environment variable {@link SETTINGS}. */
export interface Settings {
  readonly root: string;
  /** Where the compiled code is, at the same paths. */
  readonly mirror: string;
  /** The source that has a mutant, and the path of its compiled code. */
  readonly mutant?: { readonly file: string; readonly compiled: string } | undefined;
  /** Where to write which regions ran. */
  readonly reached?: string;
}

const SETTINGS = "LOCKWEAVE_MUTATION";

export function settings(): Settings {
  return JSON.parse(process.env[SETTINGS] ?? "") as Settings;
}

export function asEnvironment(told: Settings): Record<string, string> {
  return { [SETTINGS]: JSON.stringify(told) };
}
