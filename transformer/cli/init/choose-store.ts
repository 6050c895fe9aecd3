import { placeIn } from "./declared-client";
import { STORE_NAMES, type LockStore, type StoreName } from "./lock-store";
import {
  foundPostgresClient,
  oldestVersion,
  POSTGRES_PACKAGES,
  postgresClientOf,
  type PostgresClient,
} from "./postgres-client";
import type { Project } from "./project";
import { foundRedisClient, proposalFor, REDIS_PACKAGES, redisClientOf } from "./redis-client";
import { configuringFile } from "./startup";

/**
 * Returns where the locks of the project live.
 *
 * @param chosen the store that the user asks for
 */
export function lockStoreOf(project: Project, chosen?: StoreName): LockStore {
  const name = chosen ?? configuredStore(project) ?? usualStore(project);
  return name === "postgres" ? postgresStoreOf(project) : redisStoreOf(project);
}

/** Returns the store of the call of `configure()` that the project has. */
function configuredStore(project: Project): StoreName | undefined {
  const file = configuringFile(project);
  const text = file === undefined ? "" : (project.read(file) ?? "");
  const [, option] = /\b(?:configure|LockModule\s*\.\s*forRoot)\s*\(\s*\{\s*(\w+)\b/.exec(text) ?? [];
  return STORE_NAMES.find((name) => name === option);
}

/**
 * Returns the store that a user expects. With clients of both servers, that is Redis: the tag says `@redisLock`, and locks there need no
 * tables, no permission to create them, and no step in a deployment. A project that has only PostgreSQL would have to run a Redis for its
 * locks alone.
 */
function usualStore(project: Project): StoreName {
  const hasRedis = declaredOf(project, REDIS_PACKAGES) !== undefined || redisClientOf(project) !== undefined;
  return declaredOf(project, POSTGRES_PACKAGES) !== undefined && !hasRedis ? "postgres" : "redis";
}

function declaredOf(project: Project, names: readonly string[]): string | undefined {
  return names.find((name) => project.dependsOn(name));
}

// ---- Redis ----------------------------------------------------------------------------------------------

const REDIS_URL = '"redis://localhost:6379"';

function redisStoreOf(project: Project): LockStore {
  const client = redisClientOf(project);
  const found = foundRedisClient(project);
  const other = declaredOf(project, POSTGRES_PACKAGES);
  const urlArgument = `{ redis: ${REDIS_URL} }`;
  const proposed =
    client === undefined ? { argument: urlArgument, about: "" } : proposalFor(client, urlArgument);
  const takesUrls = client === undefined || client.kind.takesUrls === true;
  return {
    server: "Redis",
    found: [
      ...(found === undefined ? [] : [found]),
      ...(other === undefined ? [] : [otherStore(project, other, "Redis", "PostgreSQL", "postgres")]),
    ],
    argument: takesUrls ? urlArgument : proposed.argument,
    ...(takesUrls && {
      argumentFromEnvironment: `{ redis: process.env.REDIS_URL ?? ${REDIS_URL} }`,
    }),
    proposed,
    steps: [],
    packages: client === undefined ? ["ioredis"] : [],
    byHand: [],
  };
}

// ---- PostgreSQL -----------------------------------------------------------------------------------------

/** Without a user, because the command line prints no credentials. */
const POSTGRES_URL = "postgres://localhost/database";

function postgresStoreOf(project: Project): LockStore {
  const client = postgresClientOf(project);
  const other = declaredOf(project, REDIS_PACKAGES);
  const argument = `{ postgres: "${POSTGRES_URL}" }`;
  return {
    server: "PostgreSQL",
    found: [
      ...(client === undefined ? [] : [foundPostgresClient(project, client)]),
      ...(other === undefined ? [] : [otherStore(project, other, "PostgreSQL", "Redis", "redis")]),
    ],
    argument,
    argumentFromEnvironment: `{ postgres: process.env.POSTGRES_URL ?? "${POSTGRES_URL}" }`,
    proposed: proposedFor(client, argument),
    steps: [
      {
        command: project.running(`lockweave postgres --apply ${POSTGRES_URL}`),
        about: "creates the tables for locks. Put the URL of your database there",
      },
      {
        command: project.running("lockweave postgres"),
        about:
          "prints their SQL, for your migrations. node_modules/lockweave/docs/postgres.md lists the permissions that the application needs",
      },
    ],
    packages: client === undefined ? ["pg"] : [],
    byHand: client?.tooOld === undefined ? [] : [upgradeOf(project, client, client.tooOld)],
  };
}

function proposedFor(client: PostgresClient | undefined, argument: string): LockStore["proposed"] {
  if (client?.creation === undefined) return { argument, about: "" };
  const name = client.name === "pg" ? "pool" : "sql";
  return {
    argument: `{ postgres: ${name} }`,
    about: ` \`${name}\` is the one that ${placeIn(client.creation)} creates. Lockweave opens its own connections with the same options. A URL works, too: \`configure(${argument})\`.`,
  };
}

function upgradeOf(project: Project, { name }: PostgresClient, version: string): LockStore["byHand"][number] {
  return {
    file: "package.json",
    why: `Lockweave needs ${name} ${oldestVersion(name)} or later, but this project has ${version}:`,
    lines: [[...project.packageManager.install, `${name}@latest`].join(" ")],
  };
}

/** Names the store that the project could use, too. */
function otherStore(
  project: Project,
  packageName: string,
  server: LockStore["server"],
  otherServer: LockStore["server"],
  other: StoreName,
): string {
  const command = project.running(`lockweave init --store ${other}`);
  return `${otherServer}: \`${packageName}\` in package.json. The locks go to ${server}. For locks in ${otherServer}, run \`${command}\``;
}
