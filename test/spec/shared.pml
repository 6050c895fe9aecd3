/*
 * Shared locks on one store: readers, writers, and callers with permits. lock.pml explains time and the network. README.md explains how to
 * read this file.
 *
 * Two processes use one key, and each relies on one request ID at a time. Holds of its former IDs could only keep others out, so here they
 * end at once. `#wanted` and the store queue may choose any number and any order.
 */
#define LOCK_TIME 3 /* ticks */
#define SURE_TIME (LOCK_TIME - 1)
#ifndef LIMIT
#define LIMIT 2 /* The permits of the key. */
#endif

mtype = { nothing, writing, reading, permits };

/* ---- the store: shares.ts ------------------------------------------------------------------------------ */

mtype key = nothing; /* How the key is held. */
byte inUse; /* The permits in the value of the key. */
bool stored[2]; /* Whether the store has a hold of this process. */
byte ttl[2], mark[2]; /* Its time, and its permits. An expired hold counts until a command removes it. */

/* ---- the processes ------------------------------------------------------------------------------------- */

mtype wants[2] = nothing; /* What the process asks for or holds. */
mtype = { unused, waiting, leased };
mtype status[2] = unused;
byte age[2]; /* The ticks since the command was sent. */
byte granted[2]; /* The permits in its reply, or 0 without a reply. */
bool reduced[2]; /* A renewal was sent that keeps one permit. */
byte left[2], capacity[2], members[2]; /* The ticks until the deadline, and how many callers may share the lease, and do. */
bool renewing[2], renewalReplied[2];
byte renewalAge[2];
byte kept[2]; /* The permits that the renewal keeps. */

#define me (_pid)
#define other (1 - _pid)
#define BELIEVES(p) (left[p] > 0 && members[p] > 0)
#define CALLERS(p, mode) (BELIEVES(p) && wants[p] == mode -> members[p] : 0)

inline check() {
  /* The properties: nobody shares the key with a writer or with another mode, and the permits are respected. */
  assert(!(BELIEVES(0) && BELIEVES(1)) || (wants[0] == wants[1] && wants[0] != writing));
  assert(CALLERS(0, permits) + CALLERS(1, permits) <= LIMIT);
  assert(CALLERS(0, writing) + CALLERS(1, writing) <= 1)
}

/* `remove_hold` in shares.ts. The key is free when its last hold is gone. */
inline removeHold(p) {
  if
  :: stored[p] ->
     inUse = inUse - mark[p];
     stored[p] = false;
     ttl[p] = 0;
     mark[p] = 0;
     if :: !stored[1 - p] -> key = nothing; inUse = 0 :: else fi
  :: else
  fi
}

#ifdef PERMITS_UNCOUNTED
/* RULE PERMITS_UNCOUNTED: the store grants no more permits than are left. `room_in` in shares.ts */
#define ROOM LIMIT
#else
#define ROOM (LIMIT - inUse)
#endif

/* `SHARE_MANY` and `ENQUEUE_TO_SHARE_MANY` in share.ts, acquire.ts, and enqueue.ts. */
inline acquire() {
  if
  :: key == nothing || (key == wants[me] && wants[me] == reading) -> count = 1
  :: wants[me] == permits && (key == nothing || key == permits) && ROOM > 0 -> count = 1
  :: wants[me] == permits && (key == nothing || key == permits) && ROOM > 1 -> count = 2
#if LIMIT > 2
  :: wants[me] == permits && (key == nothing || key == permits) && ROOM > 2 -> count = 3
#endif
#ifdef MODES_MIXED
  /* RULE MODES_MIXED: a shared key admits no caller of another mode. */
  :: key != nothing && key != writing && wants[me] != permits -> count = 1
#endif
#ifdef WRITERS_SHARE
  /* RULE WRITERS_SHARE: only readers and callers with permits share a key. */
  :: key == writing && wants[me] == writing -> count = 1
#endif
  :: else -> count = 0
  fi;
  if
  :: count > 0 ->
     key = wants[me];
     stored[me] = true;
     if :: ttl[me] = LOCK_TIME :: ttl[me] = LOCK_TIME - 1 fi;
     if :: wants[me] == permits -> mark[me] = count; inUse = inUse + count :: else fi;
     if :: status[me] == waiting -> granted[me] = count :: else fi
  :: else
  fi;
  count = 0
}

/* `RENEW_SHARES` in share.ts, and renew.ts: a hold keeps at most so many permits, and releases the others. */
inline renew(keeps) {
  if
  :: keeps < mark[me] -> inUse = inUse - (mark[me] - keeps); mark[me] = keeps
  :: else
  fi
}

inline noRenewal() {
  renewing[me] = false;
  renewalReplied[me] = false;
  renewalAge[me] = 0;
  kept[me] = 0
}

/* The process never relies on this ID again. */
inline forget(p) {
  removeHold(p);
  wants[p] = nothing;
  status[p] = unused;
  age[p] = 0;
  granted[p] = 0;
  reduced[p] = false;
  left[p] = 0;
  capacity[p] = 0;
  members[p] = 0;
  renewing[p] = false;
  renewalReplied[p] = false;
  renewalAge[p] = 0;
  kept[p] = 0
}

/* `#believe` in acquisition.ts */
inline believe(permitsOfReply, since) {
  status[me] = leased;
  left[me] = SURE_TIME - since;
  members[me] = 1;
  capacity[me] = permitsOfReply;
  age[me] = 0;
  granted[me] = 0;
  reduced[me] = false;
  noRenewal()
}

active [2] proctype process() {
  byte count;
  do
  /* A command is sent. */
  :: atomic {
       status[me] == unused ->
       status[me] = waiting;
       if :: wants[me] = writing :: wants[me] = reading :: wants[me] = permits fi
     }
  /* The command that may acquire the key runs, perhaps again. A hold that is there refuses it. */
  :: atomic { status[me] != unused && (!stored[me] || ttl[me] == 0) -> removeHold(me); acquire(); check() }
  /* A renewal runs. */
  :: atomic {
       renewing[me] && stored[me] && ttl[me] > 0 ->
       if :: ttl[me] = LOCK_TIME :: ttl[me] < LOCK_TIME -> ttl[me] = LOCK_TIME - 1 fi;
       renew(kept[me]);
       renewalReplied[me] = true;
       check()
     }
  /* An earlier renewal runs late. It kept at least as many permits. */
  :: d_step {
       status[me] == leased && capacity[me] < mark[me] && ttl[me] > 0 ->
       renew(capacity[me]);
       check()
     }
  /* `#granted`: the reply arrives. `isReduced` in sent-commands.ts */
  :: d_step {
       status[me] == waiting && granted[me] > 0 && age[me] < SURE_TIME ->
       if
#ifndef REDUCED_IGNORED
       /* RULE REDUCED_IGNORED: if a renewal may have released permits, the earlier reply counts as one permit. */
       :: reduced[me] -> believe(1, age[me])
#endif
       :: else -> believe(granted[me], age[me])
       fi;
       check()
     }
  /* `#confirm`: a renewal that keeps one permit must prove a hold that the process only found. */
  :: d_step { status[me] == waiting -> noRenewal(); renewing[me] = true; kept[me] = 1; reduced[me] = true }
  /* `beforeEarlyRenewal` in shared-queue.ts: the renewal may release permits that no caller uses. */
  :: d_step {
       status[me] == leased && members[me] > 0 ->
       noRenewal();
       renewing[me] = true;
       kept[me] = members[me];
#ifndef ROOM_STAYS
       /* RULE ROOM_STAYS: a process stops using permits before it sends the renewal that releases them. */
       capacity[me] = members[me]
#endif
     }
  /* `Renewals`: the watchdog keeps all permits. */
  :: d_step { status[me] == leased -> noRenewal(); renewing[me] = true; kept[me] = capacity[me] }
  /* The reply to a renewal. */
  :: d_step {
       renewalReplied[me] && renewalAge[me] < SURE_TIME ->
       if
       :: status[me] == waiting -> believe(1, renewalAge[me])
       :: else ->
          if :: left[me] < SURE_TIME - renewalAge[me] -> left[me] = SURE_TIME - renewalAge[me] :: else fi;
          noRenewal()
       fi;
       check()
     }
  /* `#admit` in shared-queue.ts: a caller joins the lease without a command. */
  :: d_step {
       status[me] == leased && wants[me] != writing && members[me] < LIMIT &&
#ifdef JOINS_WITHOUT_ROOM
       /* RULE JOINS_WITHOUT_ROOM: at most as many callers join as the hold has permits. `hasRoom` in shared-lease.ts */
       true
#else
       (wants[me] == reading || members[me] < capacity[me])
#endif
          -> members[me]++; check()
     }
  /* A caller leaves. */
  :: d_step { members[me] > 0 -> members[me]-- }
  /* `release` in shared-queue.ts: after its last caller has left. `abandon` in acquisition.ts: no caller waits anymore. */
  :: d_step { status[me] == waiting || (status[me] == leased && members[me] == 0) -> forget(me) }
#ifdef RELEASED_WITH_CALLERS
  /* RULE RELEASED_WITH_CALLERS: a process releases a shared hold after its last caller has left. */
  :: d_step { status[me] == leased -> removeHold(me) }
#endif
  /* Any command of the other process removes a hold that has expired. */
  :: d_step { stored[other] && ttl[other] == 0 -> removeHold(other) }
  od
}

inline tick(p) {
  if :: ttl[p] > 0 -> ttl[p]-- :: else fi;
  if :: status[p] == waiting && age[p] < SURE_TIME -> age[p]++ :: else fi;
  if :: renewing[p] && renewalAge[p] < SURE_TIME -> renewalAge[p]++ :: else fi;
  if
  :: left[p] > 1 -> left[p]--
  :: left[p] == 1 -> forget(p)
  :: else
  fi
}

active proctype time() {
  do
  :: d_step { tick(0); tick(1) }
  od
}
