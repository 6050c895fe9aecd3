/*
 * The store queue of one exclusive lock: if a key is free and a live process waits for it, then somebody acquires it eventually.
 * lock.pml shows that nobody acquires it too early. README.md explains how to read this file.
 *
 * Three processes wait, hold the lock, and wait again. One of them crashes, one gives up, and one command is lost. Wake-ups may
 * always be lost.
 */
#define N 3
#define TICKET_TIME 3 /* A waiter that has not asked for this time is dead. `TICKET_TIME_MS` in port.ts */
#define LOCK_TIME 2
#ifdef POLLS_SELDOM
/* RULE POLLS_SELDOM: a waiter asks again before its reservation ends. */
#define POLL_TIME 2
#define CLAIM_TIME 1
#else
#define POLL_TIME 1 /* ticks: a waiter asks again after this time. `POLL_INTERVAL_MS` in busy-key.ts */
#define CLAIM_TIME 2 /* The time of a reservation. `CLAIM_TIME_MS` in port.ts */
#endif
#ifndef LOSSES
#define LOSSES 1
#endif

/* The value of the key: 0 if it is free, the number of its holder, a reservation, or a hold whose release was lost. */
#define RESERVED(p) (N + (p))
#define LEFT_BEHIND (2 * N + 1)
byte key, ttl;
byte queue[N]; /* The waiters in the store queue, the first one at the start. 0 means the end. */
byte silent[N + 1]; /* The ticks since the waiter last asked. */

mtype = { idle, waiting, holding, gone };
mtype state[N + 1] = idle;
byte sinceTry[N + 1]; /* The ticks since the waiter last sent a command. */
bool hasWakeUp[N + 1];
byte losses = LOSSES;
bool mayGiveUp = true;
bool mayCrash = true;

#define IS_HELD (key != 0 && key <= N)
#define SOMEBODY_WAITS (state[1] == waiting || state[2] == waiting || state[3] == waiting)
#define SOMEBODY_HOLDS (IS_HELD && state[key] == holding)
/* The property, also after the holder has crashed. If all waiters leave, nobody has to acquire the key. */
ltl acquired { [] (SOMEBODY_WAITS -> <> (SOMEBODY_HOLDS || !SOMEBODY_WAITS)) }

/* ---- the store: queue.ts ------------------------------------------------------------------------------- */

inline dequeue(p) {
  if
  :: queue[0] == p -> queue[0] = queue[1]; queue[1] = queue[2]; queue[2] = 0
  :: queue[1] == p -> queue[1] = queue[2]; queue[2] = 0
  :: queue[2] == p -> queue[2] = 0
  :: else
  fi
}

inline enqueue(p) { /* `keep_ticket` */
  silent[p] = 0;
  if
  :: queue[0] == p || queue[1] == p || queue[2] == p
  :: else ->
     if
     :: queue[0] == 0 -> queue[0] = p
     :: queue[0] != 0 && queue[1] == 0 -> queue[1] = p
     :: else -> queue[2] = p
     fi
  fi
}

inline choose(asker) { /* The store may not know whether a process receives its wake-up. */
  at = 0; first = 0; chosen = 0;
  do
  :: at == N || queue[at] == 0 -> break
  :: else ->
     if
     :: silent[queue[at]] >= TICKET_TIME -> dequeue(queue[at])
     :: silent[queue[at]] < TICKET_TIME && queue[at] == asker -> chosen = asker; break
     :: silent[queue[at]] < TICKET_TIME && queue[at] != asker ->
        if
        :: state[queue[at]] == waiting -> chosen = queue[at]; hasWakeUp[chosen] = true; break
        :: chosen = queue[at]; break
        :: if :: first == 0 -> first = queue[at] :: else fi; at++
        fi
     fi
  od;
  if :: chosen == 0 -> chosen = first :: else fi;
  at = 0; first = 0
}

inline reserve() {
  key = RESERVED(chosen);
  ttl = CLAIM_TIME;
  dequeue(chosen)
}

inline acquireAs(p) {
  key = p;
  ttl = LOCK_TIME;
  dequeue(p)
}

inline ask(p) { /* enqueue.ts */
  if
  :: key == RESERVED(p) -> acquireAs(p)
  :: key == p /* The reply of an earlier command was lost. A renewal confirms this hold. */
  :: else ->
     enqueue(p);
     if
     :: key == 0 ->
        choose(p);
        if :: chosen == p -> acquireAs(p) :: else -> reserve() fi;
        chosen = 0
     :: else
     fi
  fi
}

inline passOn(value) { /* `pass_on` */
  if
  :: key == value ->
     choose(0);
     if :: chosen == 0 -> key = 0; ttl = 0 :: else -> reserve() fi;
     chosen = 0
  :: else
  fi
}

/* ---- the processes ------------------------------------------------------------------------------------- */

#ifdef WITHOUT_POLLING
/* RULE WITHOUT_POLLING: a waiter asks again even if no wake-up arrives. `retryInMs` in busy-key.ts */
#define MUST_ASK(p) (state[p] == waiting && hasWakeUp[p])
#else
#define MUST_ASK(p) (state[p] == waiting && (hasWakeUp[p] || sinceTry[p] >= POLL_TIME))
#endif

proctype process(byte me) {
  byte at, first, chosen;
  do
  :: atomic { state[me] == idle -> state[me] = waiting; ask(me); if :: key == me -> state[me] = holding :: else fi }
  :: atomic {
       MUST_ASK(me) ->
       hasWakeUp[me] = false;
       sinceTry[me] = 0;
       if
       :: ask(me); if :: key == me -> state[me] = holding :: else fi
       :: losses > 0 -> losses-- /* The command is lost, */
       :: losses > 0 -> losses--; ask(me) /* or its reply. */
       fi
     }
  :: atomic {
       state[me] == holding -> state[me] = idle;
       if
       :: passOn(me)
       :: losses > 0 -> losses--; key = LEFT_BEHIND
       fi
     }
  /* dequeue.ts: the waiter gives up. */
  :: atomic {
       mayGiveUp && state[me] == waiting && key != me ->
       mayGiveUp = false;
       state[me] = idle;
       sinceTry[me] = 0;
       hasWakeUp[me] = false;
       dequeue(me);
       passOn(RESERVED(me))
     }
  /* A process stops, or crashes at any time. */
  :: atomic { state[me] == idle -> state[me] = gone }
  :: atomic {
       mayCrash && state[me] != gone ->
       mayCrash = false;
       state[me] = gone;
       hasWakeUp[me] = false;
       sinceTry[me] = 0
     }
  od
}

/* ---- time ---------------------------------------------------------------------------------------------- */

inline tickProcess(p) {
  if :: state[p] == waiting && sinceTry[p] < POLL_TIME -> sinceTry[p]++ :: else fi;
  if
  :: (queue[0] == p || queue[1] == p || queue[2] == p) -> if :: silent[p] < TICKET_TIME -> silent[p]++ :: else fi
  :: else -> silent[p] = 0
  fi
}

init {
  atomic { run process(1); run process(2); run process(3) };
  do
  /* A waiter asks in time, so time passes only when no waiter has to ask. */
  :: d_step {
       !MUST_ASK(1) && !MUST_ASK(2) && !MUST_ASK(3) ->
       if
       /* The holder renews its hold. */
       :: IS_HELD && state[key] == holding
#ifdef RESERVED_FOREVER
       /* RULE RESERVED_FOREVER: a reservation ends, because its waiter may have crashed. */
       :: key > N && key != LEFT_BEHIND
#endif
#ifdef HELD_FOREVER
       /* RULE HELD_FOREVER: a hold ends after its lock time, because its process may have crashed. */
       :: IS_HELD
#endif
       :: else -> if :: ttl > 0 -> ttl-- :: else fi; if :: ttl == 0 -> key = 0 :: else fi
       fi;
       tickProcess(1); tickProcess(2); tickProcess(3)
     }
  od
}
