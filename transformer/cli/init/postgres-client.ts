import { creationOf, placeIn, versionOf, type DeclaredClient } from "./declared-client";
import type { Project } from "./project";

/** The client libraries of PostgreSQL, in the order in which Lockweave prefers them. */
export const POSTGRES_PACKAGES = ["pg", "postgres"] as const;

type PackageName = (typeof POSTGRES_PACKAGES)[number];

/** The value that an application passes to `configure()`. Lockweave accepts no `Client` of pg. */
const ACCEPTED: Readonly<Record<PackageName, { readonly call: RegExp; readonly what: string }>> = {
  pg: { call: /\bnew\s+(?:\w+\.)?Pool\s*[<(]/, what: "a Pool" },
  postgres: { call: /\bpostgres\s*[<(]/, what: "a client" },
};
const CLIENT_OF_PG = /\bnew\s+(?:\w+\.)?Client\s*\(/;

const OLDEST: Readonly<Record<PackageName, readonly [major: number, minor: number]>> = {
  pg: [8, 11],
  postgres: [3, 4],
};

/** A client library of PostgreSQL. */
export interface PostgresClient extends DeclaredClient<PackageName> {
  /** The version, if Lockweave needs a later one. */
  readonly tooOld: string | undefined;
}

/** Returns the client library that package.json lists. One that is not too old comes first, and then pg. */
export function postgresClientOf(project: Project): PostgresClient | undefined {
  const declared = POSTGRES_PACKAGES.filter((name) => project.dependsOn(name));
  const name = declared.find((one) => tooOldVersion(project, one) === undefined) ?? declared[0];
  if (name === undefined) return undefined;
  const creation = creationOf(project, name, ACCEPTED[name].call);
  return { name, creation, tooOld: tooOldVersion(project, name) };
}

/** Returns a line about the client for the list of what was found. */
export function foundPostgresClient(project: Project, { name, creation }: PostgresClient): string {
  if (creation !== undefined) return `${name}: ${placeIn(creation)} creates ${ACCEPTED[name].what}`;
  const client = name === "pg" ? creationOf(project, name, CLIENT_OF_PG) : undefined;
  return client === undefined
    ? `${name}: \`${name}\` in package.json`
    : `${name}: ${placeIn(client)} creates a Client, which Lockweave leaves alone`;
}

/** Returns the oldest version that Lockweave accepts, such as `8.11`. */
export function oldestVersion(name: PackageName): string {
  return OLDEST[name].join(".");
}

function tooOldVersion(project: Project, name: PackageName): string | undefined {
  const version = versionOf(project, name);
  // A range without a minor version, such as `^8`, stands for its newest one.
  const [, major = "99", minor = "99"] = /(\d+)(?:\.(\d+))?/.exec(version) ?? [];
  const [oldestMajor, oldestMinor] = OLDEST[name];
  const isOld = Number(major) < oldestMajor || (Number(major) === oldestMajor && Number(minor) < oldestMinor);
  return isOld ? version : undefined;
}
