import { rooted } from "../../../base/root-context";
import type {
  OwnConnection,
  OwnConnectionOptions,
  StateListeners,
  Subscription,
  SubscriptionListeners,
} from "../client-port";
import { ConnectionClosedError } from "../client-port";
import type { Command } from "../command";
import { AS_BYTES, type Glide } from "./client";
import { isClosing, ownError, portError } from "./errors";
import { readReply } from "./scripts";
import { textOf } from "./words";

/** A client, and the configuration with which the application created it. */
export interface Configured {
  readonly glide: Glide;
  readonly config: object;
}

/** Options that turn off what the user's client does besides sending commands. */
const BARE = {
  protocol: 0, // RESP3, which subscriptions need.
  lazyConnect: false,
  readFrom: "primary",
  readOnly: false,
  clientSideCache: undefined,
  compression: undefined,
  inflightRequestsLimit: undefined,
  pubsubSubscriptions: undefined,
};

/** Another client with the same configuration. GLIDE reconnects it by itself. */
export class SecondClient {
  readonly #opening: Promise<Glide>;
  #glide: Glide | undefined;
  #isClosed = false;

  constructor({ glide, config }: Configured, options: object) {
    // It is created through the class of the user's client, because nothing here imports the package.
    const create = async (): Promise<Glide | undefined> =>
      await glide.constructor.createClient?.({ ...config, ...BARE, ...options });
    this.#opening = create().then((opened) => {
      if (opened === undefined) throw new Error("the client has no createClient()");
      this.#glide = opened;
      if (this.#isClosed) opened.close();
      return opened;
    });
    this.#opening.catch(() => {}); // `send()` reports it.
  }

  get opened(): Promise<Glide> {
    return this.#opening;
  }

  async send(...words: readonly string[]): Promise<unknown> {
    const glide = await this.#opening;
    try {
      return readReply(await glide.customCommand(words, AS_BYTES));
    } catch (thrown) {
      throw portError(thrown);
    }
  }

  close(): void {
    this.#isClosed = true;
    this.#glide?.close();
  }
}

/**
 * Subscribes over a client of our own. The user's client never receives our messages, and we never receive its messages.
 *
 * @param onState reports when the server answers the user's client again. Then messages may be lost here, too
 */
export function openSubscription(
  configured: Configured,
  channel: string,
  listeners: SubscriptionListeners,
  onState: (listeners: StateListeners) => () => void,
): Subscription {
  const callback = ({ message }: { readonly message: unknown }): void => listeners.message(String(message));
  const client = new SecondClient(configured, {
    pubsubSubscriptions: {
      channelsAndPatterns: { [EXACT]: new Set([channel]) },
      callback: rooted(callback),
    },
  });
  let isClosed = false;
  let id: unknown;
  let stopListening = (): void => {};
  const close = (): void => {
    isClosed = true;
    stopListening();
    client.close();
  };
  const end = (): void => {
    if (isClosed) return;
    close();
    listeners.ended();
  };
  const begin = (): void => {
    if (isClosed) return;
    stopListening = onState({ up: () => listeners.subscribed() });
    listeners.subscribed();
  };
  client
    .send(...CLIENT_ID)
    .catch(() => undefined) // The user may have no permission for it.
    .then((reply) => {
      id = reply;
    })
    .then(() => client.opened)
    .then(begin, async (thrown: unknown) => {
      const refusal = await refusalOf(configured.glide, channel);
      if (isClosed) return;
      listeners.failed(refusal ?? portError(thrown));
      end();
    })
    .catch(() => {});
  /** Another connection than before has another ID. GLIDE subscribes again on it, but messages may be lost in between. */
  const note = (reply: unknown): void => {
    const isNew = id !== reply;
    id = reply;
    if (isNew && !isClosed) listeners.subscribed();
  };
  return {
    async ping() {
      try {
        note(await client.send(...CLIENT_ID));
      } catch (error) {
        if (isClosing(error)) end();
        throw error;
      }
    },
    close,
  };
}

/** `PubSubChannelModes.Exact` */
const EXACT = 0;
const CLIENT_ID = ["client", "id"] as const;

/** Returns the error if the user lacks permission for the channel. GLIDE reports only that the connection takes too long then. */
async function refusalOf(glide: Glide, channel: string): Promise<Error | undefined> {
  try {
    await glide.customCommand(["publish", channel, ""], AS_BYTES);
    return undefined;
  } catch (thrown) {
    return portError(thrown);
  }
}

/**
 * Opens a connection for commands that must all run on one connection. GLIDE reconnects by itself, and does not report that. So the server's
 * own description of the connection shows after the commands that it is still the same one.
 */
export function openOwn(configured: Configured, { database, onEnd }: OwnConnectionOptions): OwnConnection {
  const client = new SecondClient(configured, database === undefined ? {} : { databaseId: database });
  const identity = async (): Promise<string> => {
    const info = String(await client.send("client", "info"));
    return `${/\bid=\d+/.exec(info)?.[0]} ${/\baddr=\S+/.exec(info)?.[0]}`;
  };
  const ended = (): void => {
    client.close();
    onEnd();
  };
  const first = identity();
  first.catch(ended);
  return {
    async exec(commands: readonly Command[]) {
      const before = await first;
      const replies: unknown[] = [];
      for (const command of commands) replies.push(await client.send(...textOf(command)).catch(ownError));
      const after = await identity().catch(ownError);
      if (after === before) return replies;
      ended();
      throw new ConnectionClosedError("the connection was replaced before all replies had arrived");
    },
    close: () => client.close(),
  };
}
