import type { Clock } from "../../base/clock";
import { asError } from "../../base/errors";
import type { Renewed, RenewReply, RenewRequest } from "../port";
import { storedKey } from "./keys";
import { RenewalGroups, type HoldName, type GroupRequests } from "./renewal-groups";
import { hasJoined, readIsRenewed, readRenewal } from "./replies";
import type { Command, Row } from "./statements";

/** Sends many requests in as few statements as possible. Resolves to a reply or an error for each. */
export type SendMany = <Request, Reply>(
  command: Command,
  requests: readonly Request[],
  toRow: (request: Request) => Row,
  read: (reply: unknown, request: Request) => Reply,
  timeoutMs: number,
) => Promise<readonly (Reply | Error)[]>;

const RENEWED: Renewed = { renewed: true };

/**
 * Renews holds. Those that are renewed together share a row on the server. Their renewals change only that row: see `schema/tables.ts`.
 */
export class GroupedRenewals {
  readonly #send: SendMany;
  readonly #toRow: (request: RenewRequest) => Row;
  readonly #clock: Clock;
  readonly #groups: RenewalGroups;

  constructor(
    send: SendMany,
    toRow: (request: RenewRequest) => Row,
    clock: Clock,
    groups = new RenewalGroups(),
  ) {
    this.#groups = groups;
    this.#send = send;
    this.#toRow = toRow;
    this.#clock = clock;
  }

  /** Notes that the server has confirmed the end of a hold. */
  ended(hold: HoldName): void {
    this.#groups.ended(hold);
  }

  async renew(requests: readonly RenewRequest[], timeoutMs: number): Promise<readonly RenewReply[]> {
    const { whole, joining, others } = this.#groups.plan(requests, this.#clock.now());
    if (whole.length === 0 && joining.length === 0) return this.#renewRows(requests, timeoutMs);
    const replies = new Map<RenewRequest, RenewReply>();
    const renewOthers = async (): Promise<void> =>
      note(replies, others, await settled(others, this.#renewRows(others, timeoutMs)));
    await Promise.all([
      renewOthers(),
      ...joining.map((one) => this.#join(one, timeoutMs, replies)),
      this.#renewGroups(whole, timeoutMs, replies),
    ]);
    return requests.map((request) => replies.get(request) ?? NO_REPLY);
  }

  #renewRows(requests: readonly RenewRequest[], timeoutMs: number): Promise<readonly RenewReply[]> {
    return this.#send("renew_v1", requests, this.#toRow, readRenewal, timeoutMs);
  }

  /** Renews the rows of holds, and puts these into a new group. */
  async #join(
    { group, requests, lockTimeMs }: GroupRequests,
    timeoutMs: number,
    replies: Map<RenewRequest, RenewReply>,
  ): Promise<void> {
    const joined: RenewRequest[] = [];
    const toRow = (request: RenewRequest): Row => ({ ...this.#toRow(request), group_id: group.id });
    const read = (reply: unknown, request: RenewRequest): RenewReply => {
      if (hasJoined(reply)) joined.push(request);
      return readRenewal(reply);
    };
    const endsAt = this.#clock.now() + lockTimeMs;
    try {
      note(replies, requests, await this.#send("renew_v1", requests, toRow, read, timeoutMs));
      this.#groups.created(group, joined, endsAt);
    } catch (error) {
      this.#groups.giveUp(group);
      note(replies, requests, failed(requests, error));
    }
  }

  /** Renews the rows of groups. Then renews the rows of all holds whose group was not renewed, or that have left it meanwhile. */
  async #renewGroups(
    whole: readonly GroupRequests[],
    timeoutMs: number,
    replies: Map<RenewRequest, RenewReply>,
  ): Promise<void> {
    const sentAt = this.#clock.now();
    const rows = whole.map(beginRenewal);
    const sent = this.#send("renew_groups_v1", rows, (row) => row, readIsRenewed, timeoutMs);
    const outcomes = await settled(rows, sent);
    const left: RenewRequest[] = [];
    for (const [index, { group, requests, lockTimeMs }] of whole.entries()) {
      const outcome = outcomes[index];
      if (outcome === true) {
        this.#groups.renewed(group, sentAt + lockTimeMs);
        // Meanwhile, a hold may have ended, or another command may have renewed it for another time.
        for (const request of requests)
          if (this.#groups.has(group, request)) replies.set(request, RENEWED);
          else left.push(request);
      } else {
        this.#groups.giveUp(group);
        if (outcome instanceof Error) note(replies, requests, failed(requests, outcome));
        else left.push(...requests);
      }
    }
    if (left.length === 0) return;
    const leftMs = timeoutMs - (this.#clock.now() - sentAt);
    const again = leftMs > 0 ? this.renew(left, leftMs) : Promise.reject(NO_REPLY);
    note(replies, left, await settled(left, again));
  }
}

/** Returns the request for the renewal of a group. */
function beginRenewal({ group, lockTimeMs }: GroupRequests): Row {
  group.isBusy = true;
  const ended = group.ended.map(({ key, requestId }) => ({ key: storedKey(key), request_id: requestId }));
  group.ended = [];
  return { id: group.id, renewals: group.renewals, lock_ms: lockTimeMs, ended };
}

/** Resolves to an error for each request if the command fails. */
async function settled<Reply>(
  requests: readonly unknown[],
  sent: Promise<readonly Reply[]>,
): Promise<readonly (Reply | Error)[]> {
  try {
    return await sent;
  } catch (error) {
    return failed(requests, error);
  }
}

function failed(requests: readonly unknown[], error: unknown): readonly Error[] {
  return requests.map(() => asError(error));
}

function note<Request, Reply>(
  replies: Map<Request, Reply>,
  requests: readonly Request[],
  some: readonly Reply[],
): void {
  for (const [index, request] of requests.entries()) {
    const reply = some[index];
    if (reply !== undefined) replies.set(request, reply);
  }
}

const NO_REPLY = new Error("PostgreSQL sent no reply to a renewal in time");
