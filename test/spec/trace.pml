/*
 * Definitions with which lock.pml follows traces of the real code. model-trace.ts writes the traces, and trace.h reads them. The model accepts a
 * trace if it can take each of its steps. Where the model lets the store choose, it takes the choice of the trace. A belief in a
 * trace must be no longer than the model allows. All times are in microseconds.
 */
#define TIME int

/* The kinds of steps. `STEP` in model-trace.ts has the same numbers. */
#define endStep 0
#define tickStep 1
#define grantStep 2
#define reserveStep 3
#define renewStep 4
#define freeStep 5
#define revokeStep 6
#define sendStep 7
#define sendRenewalStep 8
#define believeStep 9
#define extendStep 10
#define endLeaseStep 11
#define renounceStep 12
/* No trace has these. The first two are several steps in a trace. */
#define endAndSendStep 97
#define abandonStep 98
#define noStep 99

c_decl {
\#include "trace.h"
}

/* The next step. */
byte stepKind = noStep, stepId, stepFor;
int stepTime;
short chosen, position; /* The number of the trace, and of the step after the next one. */

bool wasSent[ALL + 1];
int sure[ALL + 1], renewalSure[2 * RENEWALS];

#define IS(step) (stepKind == step)
#define NEXT c_code { now.stepKind = trace_value(now.chosen, now.position, 0); now.stepId = trace_value(now.chosen, now.position, 1); now.stepTime = trace_value(now.chosen, now.position, 2); now.stepFor = trace_value(now.chosen, now.position, 3); now.position++; }
#define OTHERWISE :: false
#define CLAIM(property) (property)
#define ELAPSED stepTime
#define SURE(r) sure[r]
#define SURE_OF_RENEWAL(n) renewalSure[n]
#define NOTE_SENT(r) wasSent[r] = true; sure[r] = stepTime
#define NOTE_RENEWAL(n) renewalSure[n] = stepTime
#define MAY_PROVE(limit, since) (stepTime <= limit - since)
#define PROVEN(limit, since) stepTime
/* The ID of the next step, or the number that stands for all former IDs of its process. */
#define STEP_ID (wasSent[stepId] && status[stepId] == unused -> FORMER(OWNER(stepId)) : stepId)

inline startTtl() {
  ttl = stepTime
}

inline prolong() {
  stepTime >= ttl;
  ttl = stepTime
}

inline prolongLate() {
  prolong()
}

inline reserve(p) {
  stepFor == p + 1;
  key = RESERVED(p);
  ttl = stepTime
}

inline passOn() {
  key = (stepFor == 0 -> 0 : RESERVED(stepFor - 1));
  ttl = stepTime
}

inline anyId() {
  stepKind >= grantStep && stepKind <= revokeStep;
  r = STEP_ID
}

inline ownId() {
  stepKind >= sendStep && stepKind <= renounceStep && OWNER(stepId) == me;
  r = STEP_ID
}

inline unusedId() {
  !wasSent[stepId];
  q = stepId
}

/* Chooses a trace. */
inline read() {
  atomic {
    do
    :: c_expr { now.chosen + 1 < trace_count } -> chosen++
    :: break
    od;
    NEXT
  };
  do
  :: atomic {
       /* The process has given up this hold before. */
       stepKind == renounceStep && STEP_ID > 2 * LIVE;
       NEXT
     }
  :: stepKind == endStep -> c_code { trace_accepted(now.chosen); }; break
  od
}
