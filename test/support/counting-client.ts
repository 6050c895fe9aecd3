import type { RedisClient } from "../../runtime/stores/redis/client";

/** Wraps a client. `commands()` returns the names of the commands that were sent since its last call. */
export function counting(client: RedisClient): {
  readonly client: RedisClient;
  commands(): string[];
} {
  let sent: string[] = [];
  const counted = Object.create(client, {
    call: {
      value: async (command: string, ...args: (string | number)[]): Promise<unknown> => {
        sent.push(command.toUpperCase());
        return await client.call(command, ...args);
      },
    },
  }) as RedisClient;
  return {
    client: counted,
    commands() {
      const names = sent;
      sent = [];
      return names;
    },
  };
}
