import { listenInRoot } from "../../../base/root-context";
import type { StateListeners } from "../client-port";
import type { RedisClient } from "../client";

export function isCluster(client: RedisClient): boolean {
  return client.isCluster === true;
}

export function onState(client: RedisClient, { up, down }: StateListeners): () => void {
  return listenInRoot(client, { ...(down && { close: down }), ...(up && { ready: up }) });
}
