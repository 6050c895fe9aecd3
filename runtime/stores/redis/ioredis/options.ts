import type { Connection } from "../address";

/** A sentinel that accepts a connection and does not answer for this long is skipped. */
const SENTINEL_MS = 2_000;

/** Returns the options of ioredis for an address. */
export function optionsOf({
  host,
  port,
  path,
  sentinels,
  username,
  password,
  database,
  tls,
  parameters: { family, connectTimeout, ...others },
}: Connection): object {
  return {
    ...others,
    ...(family !== undefined && { family: Number.parseInt(family, 10) }),
    ...(connectTimeout !== undefined && { connectTimeout: Number(connectTimeout) }),
    ...(host !== undefined && { host }),
    ...(port !== undefined && { port }),
    ...(path !== undefined && { path }),
    ...(username !== undefined && { username }),
    ...(password !== undefined && { password }),
    ...(database !== undefined && { db: database }),
    ...(tls !== undefined && { tls }),
    ...(sentinels !== undefined && {
      sentinels: sentinels.hosts,
      name: sentinels.name,
      ...(sentinels.username !== undefined && { sentinelUsername: sentinels.username }),
      ...(sentinels.password !== undefined && { sentinelPassword: sentinels.password }),
      ...(tls !== undefined && { sentinelTLS: tls, enableTLSForSentinelMode: true }),
      // A master that hangs does not break its connection. The detector reconnects when the sentinels name another master.
      failoverDetector: true,
      sentinelCommandTimeout: SENTINEL_MS,
    }),
  };
}
