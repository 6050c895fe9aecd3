import { LockOptionError } from "../../base/errors";
import { RESERVED_NAMESPACE } from "../../base/limits";
import { formatValue } from "../../base/format-value";

/** The beginning of all names of this protocol version. Other versions use other names, so none uses the queues of another. */
const PROTOCOL = `${RESERVED_NAMESPACE}1:`;

/** Returns the channel on which a store receives wake-ups. */
export function inboxName(id: string): string {
  return `${PROTOCOL}inbox:${id}`;
}

/** Returns the channel for the locks of one master of a cluster, in the slot of `tag`. Scripts recognize it by its brace. */
export function shardInboxName(id: string, tag: string): string {
  return `${inboxName(id)}:{${tag}}`;
}

/** Returns the key in which a process announces itself. */
export function processName(processNumber: string): string {
  return `${PROTOCOL}process:${processNumber}`;
}

/** A key that belongs to a lock: its queue, the counter of its fencing tokens, or its holds if it is shared. */
type AuxiliaryKind = "queue" | "fence" | "holds";

const BEFORE_WHOLE: Readonly<Record<AuxiliaryKind, string>> = {
  queue: `${PROTOCOL}queue:{`,
  fence: `${PROTOCOL}fence:{`,
  holds: `${PROTOCOL}holds:{`,
};

/**
 * The part of a lock's key that determines its cluster slot. Redis hashes the text between the first `{` of a key and the next `}`. If
 * there is no such text, it hashes the whole key. The client's prefix is part of the key.
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
  return full === "" || full.includes("}") ? "none" : "whole"; // Braces around the whole key would be empty, or would end too early.
}

/**
 * Returns the name of a key that belongs to the lock. It is in the lock's cluster slot, if that is possible.
 *
 * No two locks share such a key, whatever their keys and prefixes are. With one prefix, the part after our namespace says how to read the
 * rest, and the rest contains the whole key. With two prefixes, neither contains our namespace (see {@link assertPrefix}). So its first
 * occurrence in a name shows where the prefix ends.
 */
export function auxiliaryKey(kind: AuxiliaryKind, prefix: string, key: string): string {
  const source = slotSource(prefix, key);
  if (source === "whole") return `${BEFORE_WHOLE[kind]}${prefix}${key}}`; // The case of nearly all locks.
  if (source !== "tag") return `${PROTOCOL}${kind}-by-name:${key}`;
  // The prefix has no brace: the tag is in the key.
  const opens = key.indexOf("{");
  return `${PROTOCOL}${kind}-by-tag:${key.slice(opens, key.indexOf("}", opens) + 1)}:${key}`;
}

/** Whether the keys that belong to the lock are in its cluster slot. */
export function isInSlot(prefix: string, key: string): boolean {
  return slotSource(prefix, key) !== "none";
}

/** @throws {LockOptionError} if keys with this prefix could look like keys of Lockweave */
export function assertPrefix(prefix: string): void {
  // A prefix such as "lock" completes our namespace together with a key that begins with the rest.
  const mayBecomeOurs = prefix !== "" && RESERVED_NAMESPACE.startsWith(prefix);
  if (!mayBecomeOurs && !prefix.includes(RESERVED_NAMESPACE)) return;
  throw new LockOptionError(
    `The client's keyPrefix must not contain ${RESERVED_NAMESPACE} or be a prefix of it, got ${formatValue(prefix)}. Fix: use another prefix, such as "app:"`,
  );
}
