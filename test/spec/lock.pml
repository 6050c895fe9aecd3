/*
 * One exclusive lock on one store, for two processes. docs/architecture.md has the protocol. README.md explains how to read this file.
 *
 * The network is unreliable: a command that was sent may run at any time, any number of times, or never. So the network forgets nothing,
 * and needs no list of messages. A crash needs no step of its own: a crashed process ends its beliefs, and its releases never run.
 *
 * Each `#ifdef` with the word RULE removes one rule. Then SPIN must find a counterexample.
 */
#define LOCK_TIME 3 /* ticks */
#define CLAIM_TIME 1 /* The time of a reservation, which is shorter than a lock time. */

/* RULE NO_DRIFT: a belief ends one tick early, because the store's clock may be fast. `DRIFT_RATIO` and `DRIFT_MS` in lease.ts */
#ifdef NO_DRIFT
#define SURE_TIME LOCK_TIME
#else
#define SURE_TIME (LOCK_TIME - 1)
#endif

/*
 * Request IDs. Each process has any number of them, but at most LIVE at once on which it may still rely. All IDs on which it never relies
 * again behave alike, so one number stands for all of them: FORMER(p).
 */
#ifndef LIVE
#define LIVE 2
#endif
#define FORMER(p) (2 * LIVE + 1 + p)
#define ALL (2 * LIVE + 2)
#define OWNER(r) (r > 2 * LIVE -> r - 2 * LIVE - 1 : r > LIVE)

/* The value of the key: 0 if it is free, the request ID `r` of a hold, or one of these two. */
#define REVOKED(r) (ALL + (r))
#define RESERVED(p) (2 * ALL + 1 + (p))

#define me (_pid - 1)

/* The renewals of each process whose replies may count. A reply to an earlier one may come later. */
#ifndef RENEWALS
#define RENEWALS 1
#endif

/* With TRACE, the model follows a run of the real code. */
#ifdef TRACE
#include "trace.pml"
#else
#define TIME byte /* ticks */
#define ELAPSED 1 /* The time of one tick. */
#define IS(step) true /* Whether the step may come next. */
#define NEXT skip
#define OTHERWISE :: else
#define CLAIM(property) assert(property)
#define MAY_PROVE(limit, since) (since < limit) /* Whether a command of that age proves anything. */
#define PROVEN(limit, since) (limit - since) /* How long it proves a belief. */
#define SURE(r) SURE_TIME
#define SURE_OF_RENEWAL(p) SURE_TIME
#define NOTE_SENT(r) skip
#define NOTE_RENEWAL(p) skip
#endif

byte key;
TIME ttl;

/* An ID is `waiting` while its command may begin a belief, and `leased` while it is a lease. Otherwise it stands for no command. */
mtype = { unused, waiting, leased };
mtype status[ALL + 1] = unused;
TIME age[ALL + 1]; /* The ticks since the command was sent. */
bool granted[ALL + 1]; /* The store replied that the command acquired the key. */
bool hasFormer[2];

byte lease[2]; /* The request ID of the lease of each process, or 0. */
TIME left[2]; /* The ticks until its deadline. */
byte inside[2]; /* The callers of the process that rely on the lease. */

byte renewed[2 * RENEWALS]; /* The request ID that the renewal names, or 0. */
TIME renewalAge[2 * RENEWALS];
bool renewalReplied[2 * RENEWALS];
#define RENEWAL(p) ((p) * RENEWALS + k) /* The renewal that a step is about. */

#ifdef SLEEP
bool asleep; /* The machine of the first process sleeps, and its monotonic clock stands still. */
bool maySleep = true;
#else
#define asleep false
#endif
#define AWAKE(p) (p != 0 || !asleep)

#define BELIEVES(p) (inside[p] > 0 && left[p] > 0 && AWAKE(p))
#define HAS_HOLD(p) ((key == lease[p] || key == REVOKED(lease[p])) && ttl >= left[p])

#ifdef VERDICT
/* `isOnlyGrant` in lease.ts: the command that acquired the key cannot run again, because its connection did not break. */
bool onlyGrant[2];
bool interrupted[2]; /* Somebody else acquired the key since the lease began. */
#ifdef VERDICT_OF_ANY_GRANT
/* RULE VERDICT_OF_ANY_GRANT: "released" proves nothing if the command that acquired the key may run again. */
#define MAY_GRANT(r) true
#else
#define MAY_GRANT(r) (status[r] != leased || !onlyGrant[OWNER(r)])
#endif
/* A property: if the key still has the hold, then its process held it throughout, even beyond its deadline. verdict.ts */
#define IS_PROVEN(p) (lease[p] != 0 && onlyGrant[p] && (key == lease[p] || key == REVOKED(lease[p])))
#endif

inline check() {
  /* The property: no two callers believe that they hold the lock. */
  CLAIM((BELIEVES(0) -> inside[0] : 0) + (BELIEVES(1) -> inside[1] : 0) <= 1);
#ifdef VERDICT
  assert(!(IS_PROVEN(0) && interrupted[0]) && !(IS_PROVEN(1) && interrupted[1]));
#endif
#ifndef ONLY_PROPERTY
  /* Step 5 of the proof, which is stronger: while a caller believes, the store has its hold. */
  CLAIM(!BELIEVES(0) || HAS_HOLD(0));
  CLAIM(!BELIEVES(1) || HAS_HOLD(1))
#endif
}

#ifdef TOKENS
#define STRIDE 2 /* A draw skips this many tokens, for hand-offs. `FENCING_STRIDE` in port.ts */
#define DRAWS 5
byte draws, fence; /* The last token that may be in use. */
byte token[ALL + 1], renewalToken[2 * RENEWALS]; /* The tokens in replies and leases. */
byte highest; /* The highest token with which a body began. */
byte handedOff[2]; /* The tokens that the lease used in hand-offs. */
#ifdef TOKENS_RESENT
/* RULE TOKENS_RESENT: no client runs a command again once it has passed on the reply. */
#define MAY_GRANT(r) (draws < DRAWS)
#else
#define MAY_GRANT(r) (draws < DRAWS && status[r] != leased)
#endif
#define MAY_DRAW (draws < DRAWS)

inline draw(t) { /* scripts/token.ts */
  draws++;
  t = fence + 1;
#ifdef TOKENS_WITHOUT_STRIDE
  /* RULE TOKENS_WITHOUT_STRIDE: a draw skips the tokens that a hand-off may use. */
  fence = fence + 1
#else
  fence = fence + STRIDE
#endif
}

inline use(t) { /* The property: tokens rise with the order of beliefs. */
  assert(t > highest);
  highest = t
}
#else
#define MAY_DRAW true
#ifndef VERDICT
#define MAY_GRANT(r) true
#endif
#endif

/* ---- the store: each step is one script ---------------------------------------------------------------- */

#ifndef TRACE
inline startTtl() { /* The store's clock may be fast by one tick in a lock time. */
  if :: ttl = LOCK_TIME :: ttl = LOCK_TIME - 1 fi
}

inline prolong() {
  if :: ttl = LOCK_TIME :: ttl < LOCK_TIME -> ttl = LOCK_TIME - 1 fi
}

inline prolongLate() { /* An earlier renewal runs late. Its lock time was shorter. */
  if :: ttl == 1 -> ttl = 2 :: else fi
}

inline reserve(p) {
  key = RESERVED(p);
  ttl = CLAIM_TIME
}

inline passOn() { /* `pass_on` in queue.ts. The queue decides nothing, so here it gives any answer. */
  if
  :: key = 0; ttl = 0
  :: reserve(0)
  :: reserve(1)
  fi
}

inline anyId() {
  if
  :: r = 1 :: r = 2 :: r = 3 :: r = 4
#if LIVE > 1
  :: r = 5 :: r = 6
#endif
#if LIVE > 2
  :: r = 7 :: r = 8
#endif
  fi
}

inline ownId() {
  if
  :: r = me * LIVE + 1
#if LIVE > 1
  :: r = me * LIVE + 2
#endif
#if LIVE > 2
  :: r = me * LIVE + 3
#endif
#ifdef LATE_RENEWAL_REVIVES
  :: r = FORMER(me)
#endif
  fi
}

inline unusedId() {
  q = me * LIVE + 1;
  do
  :: q <= (me + 1) * LIVE && status[q] != unused -> q++
  :: else -> break
  od
}
#endif

inline grant(r) {
  key = r;
  startTtl();
#ifdef TOKENS
  if :: status[r] == waiting && !granted[r] -> draw(token[r]) :: else fi;
#endif
  granted[r] = (status[r] == waiting);
#ifdef VERDICT
  interrupted[0] = interrupted[0] || (lease[0] != 0 && lease[0] != r);
  interrupted[1] = interrupted[1] || (lease[1] != 0 && lease[1] != r)
#endif
}

inline anyRenewal() {
  if
  :: k = 0
#if RENEWALS > 1
  :: k = 1
#endif
#if RENEWALS > 2
  :: k = 2
#endif
  fi
}

#define SENT(r) (r > 2 * LIVE -> hasFormer[OWNER(r)] : status[r] != unused)
#define IS_FORMER(r) (r > 2 * LIVE && r <= ALL)
#define HAS_FORMER_HOLD(p) (key == FORMER(p) || key == REVOKED(FORMER(p)))

active proctype store() {
  byte r, k;
  do
  :: atomic {
       anyId();
       anyRenewal();
       if
       /* acquire.ts, enqueue.ts: the key is free, or reserved for the ticket. */
       :: IS(grantStep) && SENT(r) && (key == 0 || key == RESERVED(OWNER(r))) && MAY_GRANT(r) -> grant(r)
       /* enqueue.ts: the key is free, and another waiter is first. */
       :: IS(reserveStep) && SENT(r) && key == 0 -> if :: reserve(0) :: reserve(1) fi
#ifdef STORE_FORGETS
       /* RULE STORE_FORGETS: the store keeps a hold until it expires. */
       :: key != 0 -> key = 0; ttl = 0
#endif
#ifdef ACQUIRE_BLINDLY
       /* RULE ACQUIRE_BLINDLY: only a free key is acquired. */
       :: SENT(r) && key != r -> grant(r)
#endif
       /* renew.ts */
       :: IS(renewStep) && renewed[RENEWAL(OWNER(r))] == r && key == r && MAY_DRAW ->
          prolong();
#ifdef TOKENS
          if :: status[r] == waiting && !renewalReplied[RENEWAL(OWNER(r))] -> draw(renewalToken[RENEWAL(OWNER(r))]) :: else fi;
#endif
          renewalReplied[RENEWAL(OWNER(r))] = true
#ifdef RENEW_BLINDLY
       /* RULE RENEW_BLINDLY: a renewal compares the key first. */
       :: renewed[RENEWAL(OWNER(r))] == r -> renewalReplied[RENEWAL(OWNER(r))] = true
#endif
       /* renew.ts: a renewal whose reply does not count. */
       :: IS(renewStep) && SENT(r) && key == r ->
#ifdef RENEWAL_SHORTENS
          /* RULE RENEWAL_SHORTENS: a renewal never shortens the lock time. `prolong` in renew.ts */
          ttl = 1
#else
          prolongLate()
#endif
       /* release.ts: the key holds the request ID, or its revoked form. */
       :: IS(freeStep) && IS_FORMER(r) && (key == r || key == REVOKED(r)) -> passOn()
       /* dequeue.ts: the waiter with the reservation leaves. */
       :: IS(freeStep) && key >= RESERVED(0) -> passOn()
#ifdef RELEASE_BLINDLY
       /* RULE RELEASE_BLINDLY: a release compares the key first. */
       :: IS_FORMER(r) && SENT(r) -> passOn()
#endif
#ifdef DEQUEUE_BLINDLY
       /* RULE DEQUEUE_BLINDLY: a waiter that leaves frees only a key that is reserved for it. */
       :: key != 0 -> passOn()
#endif
#ifdef RESERVE_BLINDLY
       /* RULE RESERVE_BLINDLY: only a key that is free or was released is reserved. */
       :: key != 0 -> if :: reserve(0) :: reserve(1) fi
#endif
#ifdef RELEASE_FIRST
       /* RULE RELEASE_FIRST: a process ends its belief before it sends the release. `lease.end()` */
       :: status[r] == leased && key == r -> passOn()
#endif
#ifdef CLOSED_BELIEVES
       /* RULE CLOSED_BELIEVES: an acquisition that released a hold never believes in it again. `#close` and `#renounce` in acquisition.ts */
       :: status[r] == waiting && key == r -> passOn()
#endif
#ifdef REUSED_ID
       /* RULE REUSED_ID: each request ID belongs to one command. Otherwise, the release of an earlier command may run late. */
       :: status[r] == leased && key == r && hasFormer[OWNER(r)] -> passOn()
#endif
       /* release-and-enqueue.ts: it ends an earlier hold of its process, revoked or not, and acquires the key in the same step. */
       :: IS(grantStep) && SENT(r) && !IS_FORMER(r) && HAS_FORMER_HOLD(OWNER(r)) && MAY_GRANT(r) -> grant(r)
       /* revoke.ts: the key keeps others out for the time that the hold has left. */
#ifdef REVOKE_BLINDLY
       /* RULE REVOKE_BLINDLY: a revocation compares the key first. */
       :: IS_FORMER(r) && SENT(r) && key != 0 -> key = REVOKED(r)
#endif
       :: IS(revokeStep) && key == r ->
#ifdef REVOKED_IS_FREE
          /* RULE REVOKED_IS_FREE: a revoked hold keeps others out until it expires or its process releases it. */
          key = 0; ttl = 0
#else
          key = REVOKED(r)
#endif
       OTHERWISE
       fi;
       r = 0;
       k = 0;
       check();
       NEXT
     }
  od
}

/* ---- the processes -------------------------------------------------------------------------------------- */

inline noRenewal(n) {
  renewed[n] = 0;
  renewalAge[n] = 0;
  renewalReplied[n] = false;
#ifdef TOKENS
  renewalToken[n] = 0
#endif
}

inline noRenewals(p) {
  noRenewal((p) * RENEWALS);
#if RENEWALS > 1
  noRenewal((p) * RENEWALS + 1);
#endif
#if RENEWALS > 2
  noRenewal((p) * RENEWALS + 2);
#endif
}

/* The process never relies on this ID again. From now on, it may send the release. */
inline forget(id, p) {
  if
  :: key == id -> key = FORMER(p)
  :: key == REVOKED(id) -> key = REVOKED(FORMER(p))
  :: else
  fi;
  status[id] = unused;
  age[id] = 0;
  granted[id] = false;
#ifdef TOKENS
  token[id] = 0;
#endif
  hasFormer[p] = true
}

/* The acquisition closes. `#close` and `#releaseUnresolved` in acquisition.ts */
inline close() {
  q = me * LIVE + 1;
  do
  :: q <= (me + 1) * LIVE ->
     if :: status[q] == waiting && q != lease[me] -> forget(q, me) :: else fi;
     q++
  :: else -> break
  od;
  q = 0
}

/* `#believe` in acquisition.ts: the only place where a lease begins. `since` is the age of the command that proves it. */
inline believe(id, since) {
  lease[me] = id;
  inside[me] = 1;
#ifdef BELIEF_FROM_REPLY
  /* RULE BELIEF_FROM_REPLY: a belief counts from before its command was sent, not from the reply. `prove` in lease.ts */
  left[me] = SURE_TIME;
#else
  left[me] = PROVEN(SURE(id), since);
#endif
#ifdef TOKENS
  if :: renewalToken[RENEWAL(me)] > token[id] -> token[id] = renewalToken[RENEWAL(me)] :: else fi;
  use(token[id]);
#endif
#ifdef VERDICT
  /* A hold that only a renewal proves may come from a command that runs again. */
  onlyGrant[me] = false;
  if :: granted[id] && renewed[RENEWAL(me)] != id -> onlyGrant[me] = true :: true fi;
#endif
  if :: id <= 2 * LIVE -> status[id] = leased; age[id] = 0; granted[id] = false :: else fi;
  close();
  noRenewals(me)
}

/* `lease.end()`, and `lose()` when the process notices its deadline or a loss. */
inline endLease(p) {
  inside[p] = 0;
  left[p] = 0;
  forget(lease[p], p);
#ifdef LATE_RENEWAL_REVIVES
  if :: renewed[p] != 0 -> renewed[p] = FORMER(p) :: else fi; /* Without more renewals. */
#else
  noRenewals(p);
#endif
#ifdef TOKENS
  handedOff[p] = 0;
#endif
#ifdef VERDICT
  onlyGrant[p] = false;
  interrupted[p] = false;
#endif
  lease[p] = 0
}

inline send() { /* `newRequest` in acquisition.ts: a new request ID for each command. */
  unusedId();
  if :: q <= (me + 1) * LIVE -> status[q] = waiting; NOTE_SENT(q) :: else fi;
  q = 0
}

active [2] proctype process() {
  byte r, q, k;
  do
  :: atomic {
       AWAKE(me);
       ownId();
       anyRenewal();
       if
       :: IS(sendStep) && lease[me] == 0 -> send()
       /* `#granted`: the reply arrives. */
       :: IS(believeStep) && status[r] == waiting && granted[r] && MAY_PROVE(SURE(r), age[r]) -> believe(r, age[r])
       /* `#confirm`: a renewal must prove a hold that the process only found. `renew` in renewals.ts: the watchdog. */
       :: IS(sendRenewalStep) && status[r] != unused -> noRenewal(RENEWAL(me)); renewed[RENEWAL(me)] = r; NOTE_RENEWAL(RENEWAL(me))
#ifdef FOUND_IS_GRANTED
       /* RULE FOUND_IS_GRANTED: a process that only finds its request ID in the store does not believe yet. */
       :: status[r] == waiting && key == r -> believe(r, 0)
#endif
#ifdef RESERVED_IS_GRANTED
       /* RULE RESERVED_IS_GRANTED: the queue decides nothing. A waiter that is next has to acquire the key. */
       :: status[r] == waiting && key == RESERVED(me) -> believe(r, 0)
#endif
       /* `#confirmed`, and `Renewals`: the reply to a renewal. */
       :: renewed[RENEWAL(me)] == r && renewalReplied[RENEWAL(me)] && MAY_PROVE(SURE_OF_RENEWAL(RENEWAL(me)), renewalAge[RENEWAL(me)]) ->
          if
          :: IS(believeStep) && status[r] == waiting -> believe(r, renewalAge[RENEWAL(me)])
          :: IS(extendStep) && lease[me] == r ->
             if
#ifdef RENEWAL_FROM_REPLY
             /* RULE RENEWAL_FROM_REPLY: an extension counts from before the renewal was sent, not from the reply. `#renew` in renewals.ts */
             :: true -> left[me] = SURE_TIME
#endif
             :: left[me] < PROVEN(SURE_OF_RENEWAL(RENEWAL(me)), renewalAge[RENEWAL(me)]) ->
                left[me] = PROVEN(SURE_OF_RENEWAL(RENEWAL(me)), renewalAge[RENEWAL(me)])
             :: else
             fi;
             noRenewal(RENEWAL(me))
#ifdef LATE_RENEWAL_REVIVES
          /* RULE LATE_RENEWAL_REVIVES: a lease ends for good. A late reply to a renewal does not revive it. `sureUntil` in lease.ts */
          :: lease[me] == 0 && r == FORMER(me) -> believe(r, renewalAge[RENEWAL(me)])
          OTHERWISE -> noRenewal(RENEWAL(me))
#endif
          fi
       /* release.ts in lock/, and `releaseAndEnqueue` in exclusive-queue.ts: the belief ends before the command is sent. */
       :: IS(endLeaseStep) && lease[me] != 0 -> endLease(me)
       :: IS(endAndSendStep) && lease[me] != 0 -> endLease(me); send()
       /* `abandon` in acquisition.ts: no caller waits anymore. */
       :: IS(abandonStep) && lease[me] == 0 -> close(); noRenewals(me)
       /* `#decline` in acquisition.ts: it renounces one hold. */
       :: IS(renounceStep) && status[r] == waiting && renewed[RENEWAL(me)] != r -> forget(r, me)
       :: IS(renounceStep) && status[r] == waiting && renewed[RENEWAL(me)] == r -> noRenewal(RENEWAL(me)); forget(r, me)
#ifdef TOKENS
       /* `handOff` in exclusive-queue.ts: the next caller gets the next token. `mayContinue` limits the number. */
       :: lease[me] != 0 && left[me] > 0 && handedOff[me] < STRIDE - 1 ->
          handedOff[me]++;
          token[lease[me]]++;
          use(token[lease[me]])
#endif
#ifdef HAND_OFF_OVERLAPS
       /* RULE HAND_OFF_OVERLAPS: in a hand-off, the previous caller leaves before the next one enters. */
       :: lease[me] != 0 && left[me] > 0 -> inside[me] = 2
#endif
#ifdef HAND_OFF_RESTARTS
       /* RULE HAND_OFF_RESTARTS: a hand-off keeps the deadline of the lease. */
       :: lease[me] != 0 && left[me] > 0 -> left[me] = SURE_TIME
#endif
       OTHERWISE
       fi;
       r = 0;
       k = 0;
       check();
       NEXT
     }
  od
}

/* ---- time ---------------------------------------------------------------------------------------------- */

inline grow(a, limit) { /* An older command proves nothing, so it needs no exact age. */
  if :: a < limit -> a = a + ELAPSED :: else fi
}

inline growRenewal(n) {
  if :: renewed[n] != 0 -> grow(renewalAge[n], SURE_OF_RENEWAL(n)) :: else fi
}

inline tickProcess(p) {
  if
  :: AWAKE(p) ->
     q = p * LIVE + 1;
     do
     :: q <= (p + 1) * LIVE ->
        if :: status[q] == waiting -> grow(age[q], SURE(q)) :: else fi;
        q++
     :: else -> break
     od;
     q = 0;
     growRenewal((p) * RENEWALS);
#if RENEWALS > 1
     growRenewal((p) * RENEWALS + 1);
#endif
#if RENEWALS > 2
     growRenewal((p) * RENEWALS + 2);
#endif
     /* The lease itself ends when the process notices its deadline. */
     if :: left[p] > ELAPSED -> left[p] = left[p] - ELAPSED :: else -> left[p] = 0 fi
  :: else
  fi
}

active proctype time() {
  byte q;
  do
  :: d_step {
       IS(tickStep);
       if :: ttl > ELAPSED -> ttl = ttl - ELAPSED :: else -> ttl = 0; key = 0 fi;
       tickProcess(0);
       tickProcess(1);
       check();
       NEXT
     }
#ifdef SLEEP
  /* One machine sleeps once. The processes are alike, so it is that of the first one. */
  :: atomic { maySleep -> maySleep = false; asleep = true }
  :: d_step {
       asleep -> asleep = false;
#ifndef SLEEP_UNNOTICED
       /* RULE SLEEP_UNNOTICED: after a suspension, only commands that were sent later prove anything. certainty.ts */
       left[0] = 0;
       if :: renewed[0] != 0 -> renewalAge[0] = SURE_TIME :: else fi; /* Without more renewals. */
       q = 1;
       do
       :: q <= LIVE ->
          if :: status[q] == waiting -> age[q] = SURE_TIME :: else fi;
          q++
       :: else -> break
       od;
       q = 0;
#endif
       check()
     }
#endif
  od
}

#ifdef TRACE
active proctype reader() {
  read()
}
#endif
