import { BAD_COUNTER } from "./scripts/token";

/** A state of a Redis, a client, or a key in which locks do not work: how it is reported, and what to do about it. */
export interface State {
  /** The code of the error with which the call rejects. */
  readonly code: "LOCK_MISCONFIGURED" | "LOCK_UNREACHABLE";
  /** Whether the state may be temporary. If so, the call retries as long as its wait budget lasts. */
  readonly mayPass: boolean;
  readonly what: string;
  readonly fix: string;
}

export const permanent = (what: string, fix: string): State => ({
  code: "LOCK_MISCONFIGURED",
  mayPass: false,
  what,
  fix,
});
export const passing = (what: string, fix: string): State => ({
  code: "LOCK_UNREACHABLE",
  mayPass: true,
  what,
  fix,
});

export const DENIED = permanent(
  "the Redis user lacks permission for a command or a key that locks need",
  "grant it the permissions listed in the package's docs/api.md",
);

/** States by the code with which Redis begins its error. */
export const STATES_BY_REPLY: Readonly<Record<string, State>> = {
  NOAUTH: permanent("Redis requires a password", "give it to the client, or put it in the URL"),
  WRONGPASS: permanent("Redis rejected the password of the client", "use the password of this Redis user"),
  NOPERM: DENIED,
  WRONGTYPE: permanent("the key contains data that is not a lock", "choose another businessFlag"),
  [BAD_COUNTER]: permanent(
    "the counter of the lock's fencing tokens contains a value that Lockweave did not write",
    "find the program that wrote it, then delete that key. New tokens start from the server's time",
  ),
  CROSSSLOT: permanent(
    "the keys of one lock are in different slots of the cluster",
    "remove each `}` outside a hash tag from the keys of locks with fencing",
  ),
  READONLY: passing(
    "Redis is a read-only replica",
    "use the address of its master, of a Sentinel, or of a Cluster",
  ),
  LOADING: passing("Redis is loading its data", "wait until it has finished, or allow a longer waitTime"),
  MASTERDOWN: passing(
    "Redis is a replica that has lost its master",
    "use the address of the new master, or bring the old one back",
  ),
  OOM: passing("Redis is out of memory", "raise its maxmemory, or delete keys that you do not need"),
  NOREPLICAS: passing(
    "Redis has fewer replicas than its min-replicas-to-write",
    "bring the replicas back, or lower that setting",
  ),
  MISCONF: passing("Redis cannot save its data to disk", "read the log of Redis. Often the disk is full"),
  BUSY: passing("Redis is busy with a script", "end that script: SCRIPT KILL"),
  CLUSTERDOWN: passing(
    "the Redis Cluster is down",
    "find the missing masters with CLUSTER INFO, and start them",
  ),
};

export const UNKNOWN_COMMAND = /^ERR unknown command/i;

export const INCOMPLETE = permanent(
  "the server does not have a command that locks, or the client library, need",
  "use Redis 6.2 or later, or Valkey, without a proxy or a `rename-command` that hides the command",
);

/** States by a part of the error's text, for errors that begin with the general code ERR. */
export const STATES_BY_TEXT: readonly (readonly [text: RegExp, state: State])[] = [
  [UNKNOWN_COMMAND, INCOMPLETE],
  [
    /max number of clients( \+ cluster connections)? reached/,
    passing(
      "Redis has reached its limit of client connections",
      "raise its maxclients, or close idle clients",
    ),
  ],
  [
    /DB index is out of range|SELECT is not allowed in cluster mode/,
    permanent(
      "Redis has no database with this number",
      "use a number below its setting `databases`, which is 16 by default, or 0 in a cluster",
    ),
  ],
];

/** States that a check of the server or of the connection found. Each client library has further states of its own. */
export const CLIENT_STATES = {
  wantsTls: permanent(
    "the server speaks TLS, and the connection does not",
    "write rediss:// instead of redis://",
  ),
  wantsNoTls: permanent(
    "the connection speaks TLS, and the server does not",
    "write redis:// instead of rediss://, or use the TLS port of the server",
  ),
  tlsOptions: permanent(
    "Node rejected the TLS options of the connection",
    "check its key, passphrase, cert, ca, pfx, and ciphers",
  ),
  staysReadOnly: permanent(
    "Redis is a read-only replica, and new connections reach one as well",
    "use the address of its master, of a Sentinel, or of a Cluster",
  ),
} as const satisfies Readonly<Record<string, State>>;

/** @param instead what else to pass to configure(), in terms of the client library */
export function noOwnConnections(instead = "pass a Redis URL to configure() instead of the client"): State {
  const what = "this Redis client opens no connection that waits for replicas";
  return permanent(what, `remove \`replicas\`, or ${instead}`);
}

/** @param useCluster what to do in terms of the client library */
export function oneOfCluster(useCluster: string): State {
  return permanent("this Redis is one node of a Cluster, and has only some of the keys", useCluster);
}
