import test from "ava";
import { lossToReport, outcomeOf, provenLoss, type ReleaseFacts } from "../../runtime/lock/verdict";
import { deadlinePassed, FREED, lossOf, unconfirmed, type Loss } from "../../runtime/queue/loss";

const OWN = "a".repeat(32);
const STOLEN = lossOf(OWN, "b".repeat(32), true);
const STOLEN_LATE = lossOf(OWN, "b".repeat(32), false);
const DELETED = lossOf(OWN, undefined, true);
const EXPIRED = lossOf(OWN, undefined, false);
const NO_REPLY = unconfirmed(new Error("no reply"));
const DEADLINE = deadlinePassed();

const CERTAIN: ReleaseFacts = {
  loss: undefined,
  earlierLoss: undefined,
  wasCertain: true,
  hasHandedOff: false,
  isShared: false,
  isReplyReliable: true,
};
const UNCERTAIN = { ...CERTAIN, wasCertain: false };
const HANDED_OFF = { ...CERTAIN, hasHandedOff: true };
const SHARED = { ...CERTAIN, isShared: true };

interface Row {
  readonly facts: ReleaseFacts;
  readonly reported: Loss | undefined;
  readonly outcome: ReturnType<typeof outcomeOf>;
}

/** The verdict for the caller and the event, by the store's reply and the knowledge of this process. */
const ROWS: Readonly<Record<string, Row>> = {
  "a certain lock that the store kept to the end is released": row(CERTAIN, undefined, "released"),
  "a stolen lock is reported although this process was certain": row(
    { ...CERTAIN, loss: STOLEN },
    STOLEN,
    "stolen",
  ),
  "a deleted key is reported although this process was certain": row(
    { ...CERTAIN, loss: DELETED },
    DELETED,
    "deleted",
  ),
  "a certain lock whose release got no reply is not lost": row(
    { ...CERTAIN, loss: NO_REPLY },
    undefined,
    "unknown",
  ),
  "an uncertain lock whose release got no reply is lost": row(
    { ...UNCERTAIN, loss: NO_REPLY },
    NO_REPLY,
    "unknown",
  ),
  "a lock whose deadline passed on our clock is not lost if the store proves it": row(
    { ...UNCERTAIN, earlierLoss: DEADLINE },
    undefined,
    "released",
  ),
  "an uncertain lock is lost despite the store's reply if another master may have granted the key": row(
    { ...UNCERTAIN, isReplyReliable: false },
    deadlinePassed(),
    "released",
  ),
  "a certain lock needs no proof from the store": row(
    { ...CERTAIN, isReplyReliable: false },
    undefined,
    "released",
  ),
  "the store's reply does not undo an early loss": row(
    { ...UNCERTAIN, earlierLoss: FREED },
    FREED,
    "released",
  ),
  "a key that is free by now is explained by the loss that was reported before": row(
    { ...UNCERTAIN, loss: EXPIRED, earlierLoss: FREED },
    FREED,
    "revoked",
  ),
  "a loss of unknown outcome explains nothing": row(
    { ...UNCERTAIN, loss: EXPIRED, earlierLoss: NO_REPLY },
    NO_REPLY,
    "expired",
  ),
  "an expired key without an earlier report has expired": row(
    { ...UNCERTAIN, loss: EXPIRED },
    EXPIRED,
    "expired",
  ),
  "a handed-off lock is not lost if the lease was stolen after its lock time": row(
    { ...HANDED_OFF, loss: STOLEN_LATE },
    undefined,
    "stolen",
  ),
  "a handed-off lock is lost if the lease was stolen early": row(
    { ...HANDED_OFF, loss: STOLEN },
    STOLEN,
    "stolen",
  ),
  "a shared lock is not lost if the common lease expired later": row(
    { ...SHARED, loss: EXPIRED },
    undefined,
    "expired",
  ),
  "a shared lock is lost if the common lease was deleted early": row(
    { ...SHARED, loss: DELETED },
    DELETED,
    "deleted",
  ),
};

function row(facts: ReleaseFacts, reported: Row["reported"], outcome: Row["outcome"]): Row {
  return { facts, reported, outcome };
}

for (const [title, { facts, reported, outcome }] of Object.entries(ROWS)) {
  test(title, (t) => {
    t.deepEqual(lossToReport(facts), reported);
    t.is(outcomeOf(facts), outcome);
  });
}

const LOSSES = [undefined, STOLEN, STOLEN_LATE, DELETED, EXPIRED, NO_REPLY, DEADLINE, FREED];
const EITHER = [false, true];

/** All facts that a release can meet. */
const ALL: readonly ReleaseFacts[] = LOSSES.flatMap((loss) =>
  LOSSES.flatMap((earlierLoss) => EITHER.flatMap((wasCertain) => variantsOf(loss, earlierLoss, wasCertain))),
);

function variantsOf(
  loss: Loss | undefined,
  earlierLoss: Loss | undefined,
  wasCertain: boolean,
): readonly ReleaseFacts[] {
  return [CERTAIN, HANDED_OFF, SHARED].flatMap(({ hasHandedOff, isShared }) =>
    EITHER.map((isReplyReliable) => ({
      loss,
      earlierLoss,
      wasCertain,
      hasHandedOff,
      isShared,
      isReplyReliable,
    })),
  );
}

test("a loss that the store proves is always reported", (t) => {
  const proven = ALL.filter((facts) => provenLoss(facts) !== undefined);
  t.true(proven.length > 100);
  for (const facts of proven) t.not(lossToReport(facts), undefined);
});

test("an uncertain lock is reported as lost unless the store proves that it was held to the end", (t) => {
  for (const facts of ALL.filter(({ wasCertain }) => !wasCertain)) {
    const isSaved = facts.loss === undefined && facts.isReplyReliable && facts.earlierLoss?.isEarly !== true;
    t.is(lossToReport(facts) === undefined, isSaved);
  }
});

test("a certain lock is reported as lost only if the store proves it", (t) => {
  for (const facts of ALL.filter(({ wasCertain }) => wasCertain)) {
    const isProven = provenLoss(facts) !== undefined;
    t.is(lossToReport(facts) !== undefined, isProven);
  }
});
