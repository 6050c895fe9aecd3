import { ACQUIRE } from "./schema/acquire";
import { ANNOUNCE, CLOSE_GROUPS, FREE, INSPECT, PEEK, REVOKE } from "./schema/admin";
import { ANNOUNCEMENTS, LOCKS } from "./schema/console";
import { DEQUEUE, ENQUEUE } from "./schema/enqueue";
import { GRANT } from "./schema/grant";
import { GUARD, GUARDS } from "./schema/guard";
import { QUEUE } from "./schema/queue";
import { RELEASE, RELEASE_AND_ENQUEUE } from "./schema/release";
import { RENEW, RENEW_GROUPS } from "./schema/renew";
import { STATE } from "./schema/state";
import { SWEEPING } from "./schema/sweep";
import { TABLES, TYPES } from "./schema/tables";
import { TRANSACTION } from "./schema/transaction";
import { DEFAULT_SCHEMA, inSchema, TABLE_NAMES } from "./schema-name";

/**
 * The changes that each version of the schema adds to the one before. A version never changes or drops a function of an earlier one, because during a
 * deployment, both versions of the application run.
 */
const VERSIONS: readonly string[] = [
  [
    TABLES,
    TYPES,
    TRANSACTION,
    STATE,
    QUEUE,
    GRANT,
    SWEEPING,
    ACQUIRE,
    ENQUEUE,
    DEQUEUE,
    RENEW,
    RENEW_GROUPS,
    RELEASE,
    RELEASE_AND_ENQUEUE,
    PEEK,
    GUARDS,
    INSPECT,
    CLOSE_GROUPS,
    REVOKE,
    FREE,
    ANNOUNCE,
    GUARD,
    LOCKS,
    ANNOUNCEMENTS,
  ].join(""),
];

/** The number of the advisory lock that keeps migrations from running at the same time. */
const MIGRATION_LOCK = 7_813_577_450_215_101;

/**
 * The time for which a migration waits for transactions that use a table it changes, such as guards. Meanwhile, all commands wait behind the
 * migration, and the locks that they renew must not expire.
 */
const LOCK_TIMEOUT = "1s";

/**
 * Grants the roles of applications the permissions for new tables and functions. These are the roles that may delete holds.
 *
 * @param schema its quoted name
 */
const grantsIn = (schema: string): string => `
  FOR app IN
    SELECT DISTINCT CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE a.grantee::regrole::text END
    FROM pg_class c, aclexplode(c.relacl) a
    WHERE c.oid = 'lockweave.hold'::regclass AND a.privilege_type = 'DELETE' AND a.grantee <> c.relowner
  LOOP
    EXECUTE 'GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA ${schema} TO ' || app;
    EXECUTE 'GRANT EXECUTE ON ALL ROUTINES IN SCHEMA ${schema} TO ' || app;
  END LOOP;`;

/**
 * Returns one SQL statement that creates or upgrades the tables and functions of a schema. It does nothing if they are up to date or newer,
 * and then needs no right to create anything. It keeps held locks. Any number of processes may run it at the same time.
 *
 * @param later versions after the ones that exist, for tests
 * @throws {LockOptionError} if the name of the schema is invalid
 */
export function migrationSql(schema: string = DEFAULT_SCHEMA, later: readonly string[] = []): string {
  const versions = [...VERSIONS, ...later];
  const newest = versions.length;
  const steps = versions.map(
    (text, index) => `
IF version < ${index + 1} THEN
${text.trim()}
END IF;
`,
  );
  return inSchema(
    schema,
    `DO $migration$
DECLARE
  version integer := 0;
  app text;
  other_tables text;
BEGIN
PERFORM pg_advisory_xact_lock(${MIGRATION_LOCK});
PERFORM set_config('lock_timeout', '${LOCK_TIMEOUT}', true);
IF (
  SELECT count(*) = 2 FROM pg_attribute c
  WHERE c.attrelid = to_regclass('lockweave.about')
    AND (c.attname, c.atttypid) IN (('id', 'uuid'::regtype), ('version', 'integer'::regtype))
) THEN
  SELECT a.version INTO STRICT version FROM lockweave.about a;
ELSE
  SELECT string_agg(c.relname, ', ' ORDER BY c.relname) INTO other_tables FROM pg_class c
  WHERE c.relnamespace = to_regnamespace('"${schema}"') AND c.relname IN ('about', ${TABLE_NAMES.map((name) => `'${name}'`).join(", ")});
  IF other_tables IS NOT NULL THEN
    RAISE EXCEPTION 'the schema ${schema} has tables of another program with the names of our tables: %. Fix: choose another schema with --schema <name>', other_tables;
  ELSIF to_regnamespace('"${schema}"') IS NULL THEN
    CREATE SCHEMA "${schema}";
  END IF;
END IF;
${steps.join("")}
IF version = 0 THEN
  INSERT INTO lockweave.about (version) VALUES (${newest});
ELSIF version < ${newest} THEN
  UPDATE lockweave.about SET version = ${newest};${grantsIn(`"${schema}"`)}
END IF;
END
$migration$;
`,
  );
}
