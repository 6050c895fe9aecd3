import { LONGEST_ANNOUNCEMENT } from "../base/limits";
import type { AnnouncedHolder, FindHolder, Locker } from "../lock/locker";

/** A hold that is not revoked. Only its value begins with the number of its process. */
const HOLD = /^([\da-f]{12})[\da-f]{20}$/;

/** A name without control characters. Any program may have written an announcement, and names get into logs. */
const NAME = /^[^\p{C}]{1,200}$/u;

type StoreOf = Pick<Locker, "store" | "manager">;

/** See {@link FindHolder}. */
export async function findHolder(
  { store: { admin }, manager }: StoreOf,
  key: string,
  value: string,
): Promise<AnnouncedHolder | undefined> {
  const [, processNumber] = HOLD.exec(value) ?? [];
  if (admin?.announced === undefined || processNumber === undefined) return undefined;
  try {
    const about = await manager.inFlight.ask(async (timeoutMs) =>
      admin.announced?.(processNumber, timeoutMs),
    );
    return about === undefined ? undefined : parseHolder(about, key);
  } catch {
    return undefined;
  }
}

/** Returns a lookup for many callers. Those that look up one hold at the same time share a command. */
export function holderFinder(of: StoreOf): FindHolder {
  const underWay = new Map<string, Promise<AnnouncedHolder | undefined>>();
  return (key, value) => {
    const known = underWay.get(value);
    if (known !== undefined) return known;
    const found = findHolder(of, key, value).finally(() => underWay.delete(value));
    underWay.set(value, found);
    return found;
  };
}

function parseHolder(about: string, key: string): AnnouncedHolder | undefined {
  if (about.length > LONGEST_ANNOUNCEMENT) return undefined;
  const { host, pid, holds } = fieldsOf(JSON.parse(about));
  if (!isName(host) || !Number.isSafeInteger(pid)) return undefined;
  const process = { host, pid: Number(pid) };
  const hold: unknown = Array.isArray(holds) ? holds.find((one) => fieldsOf(one)["key"] === key) : undefined;
  const { site } = fieldsOf(hold);
  return isName(site) ? { ...process, site } : process;
}

function isName(value: unknown): value is string {
  return typeof value === "string" && NAME.test(value);
}

function fieldsOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
}
