/*
 * A quorum of three masters, of which two must grant a lock, for two processes. A master may restart without its data. lock.pml has the
 * rules of one store, and explains request IDs, time, and the network. README.md explains how to read this file.
 */
#define MASTERS 3
#define LOCK_TIME 3 /* ticks, and also the longest lock time */
#ifdef NO_DRIFT /* RULE NO_DRIFT: a belief ends early, because the clocks of the masters may be fast. `DRIFT_RATIO` in hold.ts */
#define SURE_TIME LOCK_TIME
#else
#define SURE_TIME (LOCK_TIME - 1)
#endif
#ifndef RESTARTS
#define RESTARTS 1
#endif

/* The value of the key at each master: 0, the request ID `p` + 1 of a process, or FORMER(p): any ID on which `p` never relies again. */
#define FORMER(p) (p + 3)
byte key[MASTERS], ttl[MASTERS];
byte counts[MASTERS]; /* The ticks until the vote of a restarted master counts again. */
#ifdef EARLY_VOTE /* RULE EARLY_VOTE: a restarted master does not count until the longest lock time has passed. `fault` in master.ts */
#define COUNTS(m) true
#else
#define COUNTS(m) (counts[m] == 0)
#endif
byte restarts = RESTARTS;

bool waiting[2], leased[2]; /* Whether the command of the process may begin a belief, or has begun one. */
bool hasFormer[2];
byte age[2], left[2]; /* The ticks since the command was sent, and until the deadline of the lease. */
bool renewing[2];
byte renewalAge[2];
bool vote[6], renewalVote[6]; /* The masters that granted or renewed the hold: 3 * p + m. */

#define me (_pid)
#define BELIEVES(p) (leased[p] && left[p] > 0)
#ifdef ONE_VOTE /* RULE ONE_VOTE: a majority of masters must agree. tally.ts */
#define AGREED(v, p) (v[3 * p] || v[3 * p + 1] || v[3 * p + 2])
#else
#define AGREED(v, p) (v[3 * p] + v[3 * p + 1] + v[3 * p + 2] >= 2)
#endif

/* The property: no two processes believe that they hold the lock. */
inline check() { assert(!(BELIEVES(0) && BELIEVES(1))) }

inline noRenewal(p) {
  renewing[p] = false;
  renewalAge[p] = 0;
  renewalVote[3 * p] = false; renewalVote[3 * p + 1] = false; renewalVote[3 * p + 2] = false
}

inline noVotes(p) {
  vote[3 * p] = false; vote[3 * p + 1] = false; vote[3 * p + 2] = false;
  age[p] = 0
}

/* `Holds.end` in holds.ts: the process never reports this ID as acquired or renewed again. Then it may send releases. */
inline forget(p) {
  if :: key[0] == p + 1 -> key[0] = FORMER(p) :: else fi;
  if :: key[1] == p + 1 -> key[1] = FORMER(p) :: else fi;
  if :: key[2] == p + 1 -> key[2] = FORMER(p) :: else fi;
  waiting[p] = false;
  leased[p] = false;
  hasFormer[p] = true;
  left[p] = 0;
  noVotes(p);
  noRenewal(p)
}

inline startTtl(m) { if :: ttl[m] = LOCK_TIME :: ttl[m] = LOCK_TIME - 1 fi }

active [2] proctype process() {
  byte m;
  do
  /* `elect` in election.ts: it asks the gate, and then the others. Here, it asks the masters in any order. */
  :: d_step { !waiting[me] && !leased[me] -> waiting[me] = true }
  /* A command of the process runs at a master. */
  :: atomic {
       if :: m = 0 :: m = 1 :: m = 2 fi;
       if
       /* acquire.ts at one master. */
       :: (waiting[me] || leased[me]) && key[m] == 0 ->
          key[m] = me + 1;
          startTtl(m);
          if
          :: waiting[me] && COUNTS(m) -> vote[3 * me + m] = true
          :: else
          fi
       :: hasFormer[me] && key[m] == 0 -> key[m] = FORMER(me); startTtl(m)
       /* renew.ts at one master. */
       :: renewing[me] && key[m] == me + 1 ->
          if :: ttl[m] = LOCK_TIME :: ttl[m] < LOCK_TIME -> ttl[m] = LOCK_TIME - 1 fi;
          if :: COUNTS(m) -> renewalVote[3 * me + m] = true :: else fi
       /* release.ts at one master. */
       :: key[m] == FORMER(me) -> key[m] = 0; ttl[m] = 0
#ifdef RELEASE_FIRST
       /* RULE RELEASE_FIRST: a process ends its belief before it sends a release to any master. */
       :: leased[me] && key[m] == me + 1 -> key[m] = 0; ttl[m] = 0
#endif
#ifdef ROLLED_BACK_BELIEVES
       /* RULE ROLLED_BACK_BELIEVES: a hold that was rolled back is never reported as acquired. `abandon` in rollback.ts */
       :: waiting[me] && key[m] == me + 1 -> key[m] = 0; ttl[m] = 0
#endif
       :: else
       fi;
       m = 0;
       check()
     }
  /* `#declare` in election.ts. */
  :: d_step {
       waiting[me] && AGREED(vote, me) && age[me] < SURE_TIME;
       waiting[me] = false;
       leased[me] = true;
#ifdef BELIEF_FROM_REPLY
       /* RULE BELIEF_FROM_REPLY: a belief counts from before the first command was sent. `sentAt` in hold.ts */
       left[me] = SURE_TIME;
#else
       left[me] = SURE_TIME - age[me];
#endif
       noVotes(me);
       check()
     }
  /* `#renewHeld` in renewal.ts. */
  :: d_step { leased[me] -> noRenewal(me); renewing[me] = true }
  :: d_step {
       renewing[me] && AGREED(renewalVote, me) && renewalAge[me] < SURE_TIME;
       if :: left[me] < SURE_TIME - renewalAge[me] -> left[me] = SURE_TIME - renewalAge[me] :: else fi;
       noRenewal(me);
       check()
     }
  /* `abandon` in rollback.ts, and `release` in ending.ts. */
  :: d_step { waiting[me] || leased[me] -> forget(me) }
  od
}

inline tickMaster(m) {
  if :: ttl[m] > 0 -> ttl[m]-- :: else fi;
  if :: ttl[m] == 0 -> key[m] = 0 :: else fi;
  if :: counts[m] > 0 -> counts[m]-- :: else fi
}

inline tickProcess(p) {
  if :: waiting[p] && age[p] < SURE_TIME -> age[p]++ :: else fi;
  if :: renewing[p] && renewalAge[p] < SURE_TIME -> renewalAge[p]++ :: else fi;
  if
  :: left[p] > 1 -> left[p]--
  :: left[p] == 1 -> forget(p)
  :: else
  fi
}

active proctype time() {
  byte m;
  do
  :: d_step { tickMaster(0); tickMaster(1); tickMaster(2); tickProcess(0); tickProcess(1); check() }
  /* A master restarts without its data. */
  :: atomic {
       restarts > 0 -> restarts--;
       if :: m = 0 :: m = 1 :: m = 2 fi;
       key[m] = 0;
       ttl[m] = 0;
       counts[m] = LOCK_TIME;
       m = 0
     }
  od
}
