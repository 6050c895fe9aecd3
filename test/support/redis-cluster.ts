import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Cluster, type Redis } from "ioredis";
import { createCluster, type RedisClusterType } from "redis";
import {
  freePort,
  LAUNCHES,
  launchRedis,
  remove,
  temporaryDirectory,
  type ClientOptions,
  type RedisServer,
} from "./redis-server";
import { until } from "./until";

type NodeRedisClusterOptions = Partial<
  Pick<
    Parameters<typeof createCluster>[0],
    "defaults" | "keyPrefix" | "minimizeConnections" | "nodeAddressMap" | "useReplicas"
  >
> & { readonly RESP?: 2 | 3 };

/** A cluster of real servers. */
export interface RedisCluster {
  /** The masters, then their replicas, in their roles at the start. */
  readonly nodes: readonly ClusterNode[];
  /** Returns a client of the first node only. `stop()` disconnects it. */
  client(options?: ClientOptions): Redis;
  /** Returns a cluster client. `stop()` disconnects it. */
  cluster(options?: ConstructorParameters<typeof Cluster>[1]): Cluster;
  /** Returns a cluster client of node-redis, which is connecting. `stop()` closes it. */
  nodeRedis(options?: NodeRedisClusterOptions): RedisClusterType;
  /** Returns the node that has the slot of the key now. */
  masterOf(key: string): Promise<ClusterNode>;
  /** Returns a master that does not have the slot of the key. */
  otherMaster(key: string): Promise<ClusterNode>;
  /** Whether every node that answers reports that all slots are served, and every replica follows its master. */
  isWhole(): Promise<boolean>;
  /**
   * Lets replicas replace masters that are silent for a second, or keeps them from it. At the start they do not, because a
   * busy machine makes masters late, and writes that no replica has yet would be lost. Nodes that do not answer are not told.
   */
  setFailovers(areAllowed: boolean): Promise<void>;
  /** Describes how each node sees the cluster, for error messages. */
  views(): Promise<string>;
  stop(): Promise<void>;
}

export class ClusterNode {
  readonly id = randomBytes(20).toString("hex");
  readonly port: number;
  readonly busPort: number;
  readonly master: ClusterNode | undefined;
  readonly #dir: string;
  #server: RedisServer | undefined;
  #isFrozen = false;
  #admin: Redis | undefined;

  constructor(ports: readonly [port: number, busPort: number], dir: string, master: ClusterNode | undefined) {
    [this.port, this.busPort] = ports;
    this.#dir = dir;
    this.master = master;
  }

  get pid(): number {
    return this.server.pid;
  }

  get server(): RedisServer {
    if (this.#server === undefined) throw new Error(`the node at port ${this.port} is not running`);
    return this.#server;
  }

  /** A connection for the commands of the test itself. */
  get admin(): Redis {
    return (this.#admin ??= this.server.client());
  }

  get isRunning(): boolean {
    return this.#server !== undefined;
  }

  /** Whether the node answers: it runs, and is not frozen. */
  get answers(): boolean {
    return this.isRunning && !this.#isFrozen;
  }

  /** Stops the process without ending it. Its connections stay open, and nothing answers. */
  freeze(): void {
    process.kill(this.pid, "SIGSTOP");
    this.#isFrozen = true;
  }

  thaw(): void {
    process.kill(this.pid, "SIGCONT");
    this.#isFrozen = false;
  }

  /** Starts or restarts the node. It remembers its role in the cluster, and has no data. */
  async start(): Promise<boolean> {
    this.#server = await launchRedis(this.port, this.#dir, optionsOfNode(this.busPort));
    return this.isRunning;
  }

  async kill(): Promise<void> {
    const server = this.#server;
    this.#isFrozen = false;
    this.#server = undefined;
    this.#admin = undefined;
    await server?.stop();
  }

  async info(section: string, field: string): Promise<string | undefined> {
    const text = section === "cluster" ? await this.admin.cluster("INFO") : await this.admin.info(section);
    return new RegExp(`^${field}:(.*?)\\r?$`, "m").exec(text)?.[1];
  }

  /** Writes the node's cluster configuration, so that the nodes know each other when they start. */
  async remember(nodes: readonly ClusterNode[]): Promise<void> {
    await mkdir(this.#dir, { recursive: true });
    const masters = nodes.filter(({ master }) => master === undefined);
    const lines = nodes.map((node) => {
      const rank = masters.indexOf(node.master ?? node);
      const [first, end] = [rank, rank + 1].map((nth) => Math.round((nth * SLOTS) / masters.length));
      const role = `${node === this ? "myself," : ""}${node.master === undefined ? "master" : "slave"}`;
      const slots = node.master === undefined ? ` ${first}-${(end ?? SLOTS) - 1}` : "";
      const shard = KNOWS_SHARDS ? `,,tls-port=0,shard-id=${(node.master ?? node).id}` : "";
      const address = `127.0.0.1:${node.port}@${node.busPort}${shard}`;
      return `${node.id} ${address} ${role} ${node.master?.id ?? "-"} 0 0 ${rank + 1} connected${slots}`;
    });
    const vars = `vars currentEpoch ${masters.length} lastVoteEpoch 0`;
    await writeFile(join(this.#dir, "nodes.conf"), [...lines, vars, ""].join("\n"));
  }
}

const SLOTS = 16_384;

/** Since 7.2, a server knows the shard IDs of nodes. Redis 8.0 crashes at a sharded PUBLISH without them. */
const KNOWS_SHARDS = isAtLeast(
  "7.2",
  /v=(\d+\.\d+)/.exec(execFileSync("redis-server", ["--version"], { encoding: "utf8" }))?.[1],
);

function isAtLeast(least: string, version = "0"): boolean {
  return version.localeCompare(least, "en", { numeric: true }) >= 0;
}

/** A replica asks to replace its master after this much silence. */
const NODE_TIMEOUT_MS = 1_000;
/** Longer than any test, so that no replica replaces its master by itself. */
const NEVER_REPLACED_MS = 600_000;

function optionsOfNode(busPort: number): string[] {
  const options = {
    "cluster-enabled": "yes",
    "cluster-config-file": "nodes.conf",
    "cluster-port": busPort,
    "cluster-announce-ip": "127.0.0.1",
    "cluster-node-timeout": NODE_TIMEOUT_MS,
    "cluster-replica-validity-factor": 0,
    "repl-diskless-sync-delay": 0,
    "repl-ping-replica-period": 1,
  };
  return Object.entries(options).flatMap(([name, value]) => [`--${name}`, String(value)]);
}

/** @param replicas the total number of replicas: the first one follows the first master, and so on */
export async function startRedisCluster(masters = 1, replicas = 0): Promise<RedisCluster> {
  const dir = await temporaryDirectory();
  let nodes: readonly ClusterNode[] | undefined;
  for (let launch = 1; launch <= LAUNCHES && nodes === undefined; launch += 1) {
    nodes = await startNodes(join(dir, String(launch)), masters, replicas);
  }
  if (nodes === undefined) throw new Error(`a cluster node failed to start ${LAUNCHES} times`);
  return clusterOf(nodes, dir);
}

/** Resolves to `undefined` if a node did not start. */
async function startNodes(
  dir: string,
  masters: number,
  replicas: number,
): Promise<ClusterNode[] | undefined> {
  const nodes: ClusterNode[] = [];
  for (let nth = 0; nth < masters + replicas; nth += 1) {
    const ports = [await freePort(), await freePort()] as const;
    nodes.push(new ClusterNode(ports, join(dir, String(nth)), nodes[nth - masters]));
  }
  await Promise.all(nodes.map((node) => node.remember(nodes)));
  if ((await Promise.all(nodes.map((node) => node.start()))).every(Boolean)) {
    try {
      await until(() => areWhole(nodes));
      if (replicas === 0) return nodes;
      await setFailovers(nodes, false);
      if (await haveFirstRoles(nodes)) return nodes;
    } catch (error) {
      await Promise.all(nodes.map((node) => node.kill()));
      throw error;
    }
  }
  await Promise.all(nodes.map((node) => node.kill()));
  return undefined;
}

function clusterOf(nodes: readonly ClusterNode[], dir: string): RedisCluster {
  const clusters: Cluster[] = [];
  const nodeRedisClients: RedisClusterType[] = [];
  const masterOf = async (key: string): Promise<ClusterNode> => {
    let node: ClusterNode | undefined;
    // During a failover, a node may know no owner of the slot.
    await until(async () => {
      const any = nodes.find(({ answers }) => answers);
      const slot = Number(await any?.admin.cluster("KEYSLOT", key));
      const table = (await any?.admin.cluster("SLOTS")) as [number, number, [string, number]][] | undefined;
      const port = table?.find(([from, to]) => from <= slot && slot <= to)?.[2][1];
      node = nodes.find((one) => one.port === port);
      return node !== undefined;
    });
    if (node === undefined) throw new Error(`no node has the slot of ${key}`);
    return node;
  };
  return {
    nodes,
    client(options = {}) {
      const [first] = nodes;
      if (first === undefined) throw new Error("the cluster has no nodes");
      return first.server.client(options);
    },
    cluster(options = {}) {
      const startup = nodes.map(({ port }) => ({ host: "127.0.0.1", port }));
      const cluster = new Cluster(startup, options);
      cluster.on("error", () => {}); // Each command rejects with its own error.
      clusters.push(cluster);
      return cluster;
    },
    nodeRedis({ RESP = 3, ...options } = {}) {
      const cluster = createCluster({
        ...options,
        rootNodes: nodes.map(({ port }) => ({ socket: { host: "127.0.0.1", port } })),
        RESP: RESP as 3,
      }) as RedisClusterType;
      cluster.on("error", () => {}); // Each command rejects with its own error.
      nodeRedisClients.push(cluster);
      cluster.connect().catch(() => {}); // The cluster has stopped.
      return cluster;
    },
    masterOf,
    async otherMaster(key) {
      const owner = await masterOf(key);
      const other = nodes.find((node) => node.master === undefined && node !== owner && node.isRunning);
      if (other === undefined) throw new Error("there is no other master");
      return other;
    },
    isWhole: () => areWhole(nodes),
    setFailovers: (areAllowed) => setFailovers(nodes, areAllowed),
    async views() {
      const running = nodes.filter(({ answers }) => answers);
      const views = await Promise.all(
        running.map(async ({ admin, port }) => {
          const keys = (await admin.keys("*")).join(" ");
          return `${port}: ${keys}\n${String(await admin.cluster("NODES"))}`;
        }),
      );
      return views.join("\n");
    },
    async stop() {
      for (const cluster of clusters) cluster.disconnect();
      for (const cluster of nodeRedisClients) cluster.destroy();
      await Promise.all(nodes.map((node) => node.kill()));
      await remove(dir);
    },
  };
}

async function areWhole(nodes: readonly ClusterNode[]): Promise<boolean> {
  const tell = await Promise.all(nodes.filter(({ answers }) => answers).map(isInPlace));
  return tell.every(Boolean);
}

async function setFailovers(nodes: readonly ClusterNode[], areAllowed: boolean): Promise<void> {
  const timeoutMs = areAllowed ? NODE_TIMEOUT_MS : NEVER_REPLACED_MS;
  const answering = nodes.filter(({ answers }) => answers);
  await Promise.all(answering.map(({ admin }) => admin.config("SET", "cluster-node-timeout", timeoutMs)));
}

/** Whether no replica has replaced its master. */
async function haveFirstRoles(nodes: readonly ClusterNode[]): Promise<boolean> {
  const roles = await Promise.all(nodes.map((node) => node.info("replication", "role")));
  return nodes.every(({ master }, nth) => roles[nth] === (master === undefined ? "master" : "slave"));
}

async function isInPlace(node: ClusterNode): Promise<boolean> {
  try {
    if ((await node.info("cluster", "cluster_state")) !== "ok") return false;
    return ((await node.info("replication", "master_link_status")) ?? "up") === "up";
  } catch {
    return false; // The node is still loading its data.
  }
}
