import { LockOptionError } from "../../errors";
import { RESERVED_NAMESPACE } from "../../limits";
import { formatValue } from "../../format-value";

/** The names of this version of what is stored: another one does not take its queues for ours. */
const PROTOCOL = `${RESERVED_NAMESPACE}2:`;

/** The channel on which a store hears hints. */
export function inboxName(id: string): string {
  return `${PROTOCOL}inbox:${id}`;
}

/** The same for the locks of one master of a cluster: a channel in the slot of `tag`. The script knows it by its brace. */
export function shardInboxName(id: string, tag: string): string {
  return `${inboxName(id)}:{${tag}}`;
}

/** Where a process says who it is. */
export function processName(processNumber: string): string {
  return `${PROTOCOL}process:${processNumber}`;
}

/** What stands beside a lock: its queue, the counter of its fencing tokens, and the holds of those who share it. */
type Beside = "queue" | "fence" | "holds";

const BEFORE_WHOLE: Readonly<Record<Beside, string>> = {
  queue: `${PROTOCOL}queue:{`,
  fence: `${PROTOCOL}fence:{`,
  holds: `${PROTOCOL}holds:{`,
};

/**
 * Where the cluster slot of a lock comes from. Redis hashes what stands between the first `{` of a key and the next `}`;
 * where nothing stands there, the whole key. The prefix that the client puts before a key is part of it.
 *
 * `none`: no other key that begins with our name can be in that slot.
 */
type SlotSource = "prefix" | "tag" | "whole" | "none";

function slotSource(prefix: string, key: string): SlotSource {
  const full = prefix === "" ? key : prefix + key;
  const opens = full.indexOf("{");
  const closes = full.indexOf("}", opens + 1);
  const isTagged = closes > opens + 1;
  if (opens >= 0 && opens < prefix.length) return isTagged && closes < prefix.length ? "prefix" : "none";
  if (opens >= 0 && isTagged) return "tag";
  return full === "" || full.includes("}") ? "none" : "whole"; // Braces around the whole would be none, or end early.
}

/**
 * The name of what stands beside the lock, in the lock's cluster slot where that can be.
 *
 * No two locks share one, whatever they and the prefix are: with one prefix, the word after our name tells how the rest is
 * to be read, and the rest has the whole key in it. Of two prefixes neither has our name in it (see
 * {@link assertPrefix}), so that the first place where it stands tells what the prefix was.
 */
export function nameBeside(beside: Beside, prefix: string, key: string): string {
  const source = slotSource(prefix, key);
  if (source === "whole") return `${BEFORE_WHOLE[beside]}${prefix}${key}}`; // As nearly all are.
  if (source !== "tag") return `${PROTOCOL}${beside}-by-name:${key}`;
  // The prefix has no brace: the tag is in the key.
  const opens = key.indexOf("{");
  return `${PROTOCOL}${beside}-by-tag:${key.slice(opens, key.indexOf("}", opens) + 1)}:${key}`;
}

/** Whether what stands beside the lock is in its cluster slot. */
export function isInSlot(prefix: string, key: string): boolean {
  return slotSource(prefix, key) !== "none";
}

/** @throws {LockOptionError} when keys of the client could pass for ours */
export function assertPrefix(prefix: string): void {
  // One like "lock" would be made ours by a key that begins with the rest.
  const mayBecomeOurs = prefix !== "" && RESERVED_NAMESPACE.startsWith(prefix);
  if (!mayBecomeOurs && !prefix.includes(RESERVED_NAMESPACE)) return;
  throw new LockOptionError(
    `Expected the client's keyPrefix not to contain ${RESERVED_NAMESPACE} or to be a prefix of it (end it with ":"), got ${formatValue(prefix)}`,
  );
}
