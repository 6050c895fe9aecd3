/** Bun's built-in `RedisClient`, as far as the adapter uses it. */
export interface BunRedis {
  readonly connected: boolean;
  /** There is one callback of each kind. Bun calls it with its own `this`, and the callback of the user must get the same one. */
  onconnect: Callback | null | undefined;
  /** Called only when the client was closed or stopped reconnecting. */
  onclose: Callback | null | undefined;
  connect(): Promise<unknown>;
  send(command: string, args: readonly string[]): Promise<unknown>;
  subscribe(channel: string, listener: (message: string) => void): Promise<unknown>;
  /** Connects the duplicate only if this client is connected. The duplicate has no callbacks. */
  duplicate(): Promise<BunRedis>;
  close(): void;
}

type Callback = (this: unknown, ...args: unknown[]) => unknown;
