/*
 * The guard of PostgreSQL: a transaction of a holder locks the row of its hold. Then nobody else acquires the key until that transaction
 * ends, even if the hold expires or the process sleeps. docs/postgres.md has this promise. README.md explains how to read this file.
 *
 * Two holders use one key. No clock matters here, because a hold may expire at any time. Commands may run late, and any number of times.
 */
byte holder; /* The holder in the row of the key: 1 or 2, or 0 if there is no row. */
bool over, released; /* The row has expired, or its holder released it while a transaction had locked it. */
bool rowLives[3]; /* The row that this holder inserted still exists. */

mtype = { none, begun, guarding };
mtype transaction[3] = none; /* The transaction of each holder. */
bool sawRow[3]; /* In REPEATABLE READ: the row of the holder existed when its transaction began. */
#define IS_LOCKED (transaction[1] == guarding || transaction[2] == guarding)

inline deleteRow() {
#ifdef UPDATED_IN_PLACE
  /* RULE UPDATED_IN_PLACE: whoever acquires a key inserts a new row, and never writes its name into an old one. docs/decisions/lease-rows.md */
  skip
#else
  rowLives[holder] = false
#endif
}

active [2] proctype process() {
#define own (_pid + 1)
#define other (2 - _pid)
  do
  /* `grant_v1` in grant.ts, after `remove_over_v1` in state.ts. That skips a row that a transaction has locked. */
  :: d_step {
       holder == 0 ||
#ifdef LOCKED_ROW_REMOVED
       /* RULE LOCKED_ROW_REMOVED: an acquisition skips an expired row that a transaction has locked. */
       over || released;
#else
       ((over || released) && !IS_LOCKED);
#endif
       if :: holder != 0 -> deleteRow() :: else fi;
       /* The property: nobody acquires the key between a guard and the end of its transaction. */
       assert(transaction[other] != guarding);
       holder = own;
       rowLives[own] = true;
       over = false;
       released = false
     }
  /* `end_hold_v1` in release.ts. */
  :: d_step {
       holder == own && !over;
       if
#ifdef LOCKED_ROW_RELEASED
       /* RULE LOCKED_ROW_RELEASED: a release leaves the row while a transaction has locked it. */
       :: true
#else
       :: !IS_LOCKED
#endif
          -> rowLives[own] = false; holder = 0; released = false
       :: else -> released = true
       fi
     }
  /* The hold expires. A renewal would only delay this. */
  :: holder == own -> over = true

  :: d_step { transaction[own] == none -> transaction[own] = begun; sawRow[own] = (holder == own) }
  /* `guard_v1` in guard.ts, in READ COMMITTED: the row is there now. */
  :: d_step {
       transaction[own] == begun && holder == own && !released -> transaction[own] = guarding
     }
  /* The same in REPEATABLE READ: the row of the snapshot is there. It may be revoked or released since. */
  :: d_step { transaction[own] == begun && sawRow[own] && rowLives[own] -> transaction[own] = guarding }
#ifdef GUARD_WITHOUT_ROW
  /* RULE GUARD_WITHOUT_ROW: a guard needs the row of its hold. */
  :: d_step { transaction[own] == begun -> transaction[own] = guarding }
#endif
#ifdef GUARD_ONLY_READS
  /* RULE GUARD_ONLY_READS: a guard locks the row, and does not only read it. Without the lock, an expired row may disappear. */
  :: d_step { transaction[own] == guarding && over -> rowLives[own] = false; holder = 0; over = false; released = false }
#endif
  /* COMMIT or ROLLBACK, or the server ends a forgotten transaction. */
  :: d_step { transaction[own] != none -> transaction[own] = none; sawRow[own] = false }
  od
}
