import { SHARED_BY_READERS } from "../../value";

/** Autovacuum runs by the number of changed rows, and not by the size of the table. */
const OFTEN_CHANGED = `
  autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000,
  autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 50000,
  autovacuum_vacuum_cost_delay = 0`;

/**
 * The tables. A renewal changes no column of an index, and each page has free space. So an update needs no new index entry, and leaves
 * nothing that only VACUUM can remove.
 *
 * Holds that a process renews together share a row of `renewal_group`, and renewing them changes only that row. While a transaction keeps a
 * snapshot, VACUUM removes no old row versions. With an update for each hold, the tables would grow and become slow.
 *
 * A hold is never given to another holder: its row is deleted, and another one is inserted. The row of a hold that a transaction guards
 * is locked, so nobody can delete it, and the key stays held until that transaction ends.
 *
 * The columns have the collation "C", so that equal means equal byte for byte, and so that an upgrade of the operating system cannot
 * break an index.
 */
export const TABLES = `
-- One row: the version of the schema, and an ID that tells this database from others.
CREATE TABLE lockweave.about (
  id uuid NOT NULL DEFAULT gen_random_uuid(),
  version integer NOT NULL
);

CREATE TABLE lockweave.hold (
  key text COLLATE "C" NOT NULL,
  -- The request ID of the command that acquired the key. With a prefix: the ticket of a reservation, or the hold before a cooldown.
  holder text COLLATE "C" NOT NULL,
  expires_at timestamptz NOT NULL,
  is_revoked boolean NOT NULL DEFAULT false,
  -- The hold has ended, but another transaction had locked the row, so it could not be deleted.
  is_released boolean NOT NULL DEFAULT false,
  -- Null for an exclusive hold, 0 for a reader, and otherwise the number of permits that the key has.
  permit_limit integer,
  permits integer NOT NULL DEFAULT 1,
  -- The hold ends no earlier than its renewal group, if that exists. It has no index, so that joining a group changes none. A foreign key
  -- would lock rows of groups.
  group_id uuid,
  PRIMARY KEY (key, holder)
) WITH (fillfactor = 50, ${OFTEN_CHANGED});

-- Holds that one process renews together. Its ID is never used again.
CREATE TABLE lockweave.renewal_group (
  id uuid PRIMARY KEY,
  expires_at timestamptz NOT NULL,
  -- How often it was renewed, or -1 if nobody may renew it again.
  renewals integer NOT NULL DEFAULT 0
) WITH (fillfactor = 50, ${OFTEN_CHANGED});

CREATE TABLE lockweave.waiter (
  key text COLLATE "C" NOT NULL,
  turn bigint NOT NULL,
  ticket text COLLATE "C" NOT NULL,
  -- The channel on which the waiter's process listens. Empty if it cannot listen.
  inbox text COLLATE "C" NOT NULL,
  is_reader boolean NOT NULL,
  expires_at timestamptz NOT NULL,
  PRIMARY KEY (key, turn),
  UNIQUE (key, ticket)
) WITH (fillfactor = 50, ${OFTEN_CHANGED});

CREATE TABLE lockweave.fence (
  key text COLLATE "C" PRIMARY KEY,
  -- The largest fencing token in use.
  last_token bigint NOT NULL,
  expires_at timestamptz NOT NULL
) WITH (fillfactor = 50, ${OFTEN_CHANGED});

CREATE TABLE lockweave.process (
  number text COLLATE "C" PRIMARY KEY,
  about text NOT NULL,
  expires_at timestamptz NOT NULL
) WITH (fillfactor = 50, ${OFTEN_CHANGED});
`;

/** The types of requests, and of the state of a key. */
export const TYPES = `
CREATE TYPE lockweave.request_v1 AS (
  key text,
  request_id text,
  lock_ms double precision,
  fencing boolean,
  permit_limit integer,
  permits integer,
  replicas integer,
  ticket text,
  inbox text,
  cooldown_ms double precision,
  -- The renewal group that the hold joins, the same in all requests of a batch that have one.
  group_id uuid,
  -- Whether another transaction keeps the advisory lock of the key. Null if not.
  is_busy boolean
);

CREATE TYPE lockweave.key_state_v1 AS (
  -- Null if the key is free.
  value text,
  is_shared boolean,
  -- Whether all holds are over, but their rows are locked.
  is_over boolean,
  -- The permits that are held, and the smallest and largest limit of the holders. 0 for readers.
  permits bigint,
  least_limit integer,
  most_limit integer,
  first_ends timestamptz,
  last_ends timestamptz
);

CREATE TYPE lockweave.first_waiter_v1 AS (
  -- Null if nobody waits.
  ticket text,
  inbox text,
  -- Whether more dead waiters are in front than one command removes.
  is_after_dead boolean
);
`;

export const READERS = `'${SHARED_BY_READERS}'`;
