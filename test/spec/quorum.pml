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
/* A restarted master does not count until the longest lock time has passed. `fault` in master.ts */
#define COUNTS(m) (counts[m] == 0)
#ifdef EARLY_VOTE /* RULE EARLY_VOTE: such a master grants no hold. `#askAndNote` in election.ts */
#define GRANT_COUNTS(m) true
#else
#define GRANT_COUNTS(m) COUNTS(m)
#endif
#ifdef EARLY_RENEWAL /* RULE EARLY_RENEWAL: such a master renews no hold. `askAll` in masters.ts */
#define RENEWAL_COUNTS(m) true
#else
#define RENEWAL_COUNTS(m) COUNTS(m)
#endif
byte restarts = RESTARTS;

bool waiting[2], leased[2]; /* Whether the command of the process may begin a belief, or has begun one. */
bool hasFormer[2];
byte age[2], left[2]; /* The ticks since the command was sent, and until the deadline of the lease. */
bool renewing[2];
byte renewalAge[2];
/* The masters that granted or renewed the hold: 3 * p + m. A vote counts if the master counts when the reply arrives, which may be late. */
mtype = { none, early, counted };
mtype vote[6] = none, renewalVote[6] = none;

#define me (_pid)
#define BELIEVES(p) (leased[p] && left[p] > 0)
#ifdef ONE_VOTE /* RULE ONE_VOTE: a majority of masters must agree. tally.ts */
#define MAJORITY 1
#else
#define MAJORITY 2
#endif
#define AGREED(v, p) ((v[3 * p] == counted) + (v[3 * p + 1] == counted) + (v[3 * p + 2] == counted) >= MAJORITY)

/* The property: no two processes believe that they hold the lock. */
inline check() { assert(!(BELIEVES(0) && BELIEVES(1))) }

inline noRenewal(p) {
  renewing[p] = false;
  renewalAge[p] = 0;
  renewalVote[3 * p] = none; renewalVote[3 * p + 1] = none; renewalVote[3 * p + 2] = none
}

inline noVotes(p) {
  vote[3 * p] = none; vote[3 * p + 1] = none; vote[3 * p + 2] = none;
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
#ifndef RENEWED_AFTER_RELEASE
  noRenewal(p)
#endif
}

inline cast(v, counts_now) {
  if
  :: counts_now -> v = counted
  :: !counts_now && v == none -> v = early
  :: else
  fi
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
          if :: waiting[me] -> cast(vote[3 * me + m], GRANT_COUNTS(m)) :: else fi
       :: hasFormer[me] && key[m] == 0 -> key[m] = FORMER(me); startTtl(m)
       /* renew.ts at one master. */
       :: renewing[me] && key[m] == me + 1 ->
          if :: ttl[m] = LOCK_TIME :: ttl[m] < LOCK_TIME -> ttl[m] = LOCK_TIME - 1 fi;
          cast(renewalVote[3 * me + m], RENEWAL_COUNTS(m))
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
       if
#ifdef RENEWAL_FROM_REPLY
       /* RULE RENEWAL_FROM_REPLY: an extension counts from before the first renewal was sent. `sentAt` in renewal.ts */
       :: true -> left[me] = SURE_TIME
#endif
       :: left[me] < SURE_TIME - renewalAge[me] -> left[me] = SURE_TIME - renewalAge[me]
       :: else
       fi;
       noRenewal(me);
       check()
     }
#ifdef RENEWED_AFTER_RELEASE
  /* RULE RENEWED_AFTER_RELEASE: a hold that was released is never reported as renewed. `#renewed` in renewal.ts */
  :: d_step {
       !waiting[me] && !leased[me] && renewing[me] && AGREED(renewalVote, me) && renewalAge[me] < SURE_TIME;
       leased[me] = true;
       left[me] = SURE_TIME - renewalAge[me];
       noRenewal(me);
       check()
     }
#endif
  /* `abandon` in rollback.ts, and `release` in ending.ts. */
  :: d_step { waiting[me] || leased[me] -> forget(me) }
  od
}

inline count(v) { if :: v == early -> v = counted :: else fi }

inline tickMaster(m) {
  if :: ttl[m] > 0 -> ttl[m]-- :: else fi;
  if :: ttl[m] == 0 -> key[m] = 0 :: else fi;
  if
  :: counts[m] == 1 -> counts[m] = 0; count(vote[m]); count(vote[3 + m]); count(renewalVote[m]); count(renewalVote[3 + m])
  :: counts[m] > 1 -> counts[m]--
  :: else
  fi
}

inline tickProcess(p) {
  if :: waiting[p] -> age[p]++ :: else fi;
  if :: renewing[p] -> renewalAge[p]++ :: else fi;
  /* What is too old proves nothing, and ends. A lease ends later than its deadline if its process is stopped then, or waits for a renewal. */
  if
  :: age[p] == SURE_TIME || (leased[p] && left[p] == 0 && !renewing[p]) -> forget(p)
  :: else -> if :: left[p] > 0 -> left[p]-- :: else fi
  fi;
  if :: renewalAge[p] == SURE_TIME -> noRenewal(p) :: else fi
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
