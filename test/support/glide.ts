import { createRequire } from "node:module";
import { join } from "node:path";
import type { ValkeyGlide } from "../../runtime/stores/redis/client";
import type { RedisCluster } from "./redis-cluster";

// Clients of Valkey GLIDE, which `test/matrix/clients.ts` installs. See other-clients.ts.

/** A client of GLIDE, as far as tests use it. */
export interface GlideClient {
  customCommand(words: readonly string[]): Promise<unknown>;
  getPubSubMessage(): Promise<unknown>;
  close(): void;
}

export interface GlideConfig {
  readonly addresses: readonly { readonly host: string; readonly port: number }[];
  readonly databaseId?: number;
  readonly requestTimeout?: number;
  /** The client connects for its first command. */
  readonly lazyConnect?: boolean;
  readonly defaultDecoder?: 0 | 1;
  /** Only for a cluster: returns the address at which a node is reached. */
  readonly addressResolver?: (host: string, port: number) => [host: string, port: number];
  readonly credentials?: { readonly username: string; readonly password: string };
  readonly advancedConfiguration?: { readonly connectionTimeout: number };
}

interface GlideClass {
  createClient(config: GlideConfig): Promise<GlideClient>;
}

interface GlideLibrary {
  readonly GlideClient: GlideClass;
  readonly GlideClusterClient: GlideClass;
  readonly Logger: { setLoggerConfig(level: "off"): void };
}

/** Loads GLIDE. Only a test that `withOtherClients` registers may call it. */
function loadGlide(): GlideLibrary {
  const from = createRequire(join(process.env["CLIENTS_FROM"] ?? "", "package.json"));
  const library = from("@valkey/valkey-glide") as GlideLibrary;
  library.Logger.setLoggerConfig("off");
  return library;
}

/** A client and its configuration, as `configure({ redis })` takes them. */
export interface OpenGlide extends ValkeyGlide {
  readonly glide: GlideClient;
  readonly config: GlideConfig;
}

/** Connects a client to a port of this machine. */
export async function openGlide(port: number, options: Partial<GlideConfig> = {}): Promise<OpenGlide> {
  return await openOf(loadGlide().GlideClient, [port], options);
}

/** Connects a client to a cluster. */
export async function openGlideCluster(
  { nodes }: RedisCluster,
  options: Partial<GlideConfig> = {},
): Promise<OpenGlide> {
  const ports = nodes.filter(({ isRunning }) => isRunning).map(({ port }) => port);
  return await openOf(loadGlide().GlideClusterClient, ports, options);
}

/**
 * Leaves time for a busy machine. GLIDE gives up a connection after 2 s by default, and the store opens its second client with the same
 * options.
 */
const PATIENT = { requestTimeout: 2_000, advancedConfiguration: { connectionTimeout: 20_000 } };

async function openOf(
  library: GlideClass,
  ports: readonly number[],
  options: Partial<GlideConfig>,
): Promise<OpenGlide> {
  const addresses = ports.map((port) => ({ host: "127.0.0.1", port }));
  const config = { addresses, ...PATIENT, ...options };
  return { glide: await library.createClient(config), config };
}
