import type { ValkeyGlide, ValkeyGlideClient } from "../client";
import type { ClientPort } from "../client-port";
import type { Glide, GlideCluster, GlideConfig } from "./client";
import { GlideClusterPort } from "./cluster";
import { ConfiguredGlideNode, GlideNode } from "./node";

/** A client of GLIDE, or an object with it. */
type Given = ValkeyGlide | ValkeyGlideClient;

export function isGlide(client: unknown): client is Given {
  if (typeof client !== "object" || client === null) return false;
  return "glide" in client || isClient(client);
}

/** Returns why the client cannot be used, with a fix, or undefined if it can. */
export function lackOfGlide(given: Given): string | undefined {
  const { glide, config } = partsOf(given);
  if (!isClient(glide))
    return "an object whose `glide` is not a client of Valkey GLIDE. Fix: pass { glide: client, config }, where client is what GlideClient.createClient(config) resolves to";
  const isCluster = isOfCluster(glide);
  const kind = isCluster ? "GlideClusterClient" : "GlideClient";
  if (config === undefined) {
    return isCluster
      ? "a GlideClusterClient of Valkey GLIDE without its config. Fix: pass { glide: client, config }, with the config that GlideClusterClient.createClient() got"
      : undefined;
  }
  if (typeof config !== "object" || config === null)
    return `an object whose \`config\` is not an object. Fix: pass the config that ${kind}.createClient() got`;
  if (typeof (glide as unknown as Glide).constructor.createClient !== "function")
    return `an object whose \`glide\` was not made by ${kind}.createClient(). Fix: pass what createClient() resolves to, without a wrapper`;
  return undefined;
}

/** @param given a client for which {@link lackOfGlide} returns undefined */
export function serversOfGlide(given: Given): "one node" | "cluster" {
  return isOfCluster(partsOf(given).glide as object) ? "cluster" : "one node";
}

/** @param given a client for which {@link lackOfGlide} returns undefined */
export function portOfGlide(given: Given): ClientPort {
  const { glide, config } = partsOf(given);
  const client = glide as Glide;
  if (isOfCluster(client)) return new GlideClusterPort(client, config as GlideConfig);
  return config === undefined
    ? new GlideNode(client)
    : new ConfiguredGlideNode({ glide: client, config: config as object });
}

function partsOf(given: Given): { readonly glide: unknown; readonly config?: unknown } {
  return "glide" in given ? given : { glide: given };
}

/** Only a client of a cluster sends a function to nodes of the caller's choice. */
function isOfCluster(client: object): client is GlideCluster {
  return "fcallWithRoute" in client && "exec" in client;
}

function isClient(client: unknown): client is ValkeyGlideClient {
  const { customCommand, getPubSubMessage } = (client ?? {}) as Partial<ValkeyGlideClient>;
  return typeof customCommand === "function" && typeof getPubSubMessage === "function";
}
