import {
  configure,
  health,
  LockClosedError,
  LockOptionError,
  ready,
  shutdown,
  type Configuration,
  type ReadyOptions,
  type StoreHealth,
} from "./index";

// This entry point has a file of its own, which `lockweave` does not load. It imports only public names, so that it contains no second copy
// of the runtime. It needs no package of NestJS, because a dynamic module is a plain object, and a provider needs no decorator.

/** The options of `LockModule`: those of `configure()`, and `ready`. NestJS handles signals, so there is no `shutdownOn`. */
export interface LockModuleOptions extends Omit<Configuration, "shutdownOn"> {
  /** Makes the application start only when the stores accept locks, as `ready()` does. Default `false`. */
  readonly ready?: boolean | ReadyOptions;
}

/** The options of `LockModule.forRootAsync()`, as other modules of NestJS have them. */
export interface LockModuleAsyncOptions<Injected extends readonly unknown[]> {
  /** The modules whose providers `inject` names. */
  readonly imports?: readonly unknown[];
  /** The providers that `useFactory` receives. */
  readonly inject?: readonly unknown[];
  /** Returns the options. */
  readonly useFactory: (...injected: Injected) => LockModuleOptions | PromiseLike<LockModuleOptions>;
}

/** A module for the `imports` of an application. It can be used as a `DynamicModule` of `@nestjs/common`. Only NestJS reads it. */
export interface LockDynamicModule {
  module: new () => object;
  global: true;
  imports: never[];
  providers: never[];
  exports: never[];
}

/** What `LockHealthIndicator` reports, as Terminus expects it. */
export type LockHealth<Key extends string> = Record<
  Key,
  {
    /** `down` also until a store replies for the first time. */
    status: "up" | "down";
    stores: Readonly<Record<string, StoreHealth>>;
  }
>;

/**
 * The token of the provider that configures locks when NestJS creates it. In a test, replace it with test locks:
 * `overrideProvider(LOCKS).useValue(testLocks())`.
 */
export const LOCKS: unique symbol = Symbol.for("lockweave:nest:locks") as typeof LOCKS;

/** Reports the stores to `@nestjs/terminus` 11 or later: `health.check([() => locks.check()])`. Inject it by its class. */
export class LockHealthIndicator {
  /**
   * Returns the state of the stores under this name. It returns immediately, so a probe can call it every second.
   *
   * @throws {LockMisconfiguredError} if locks are not configured
   */
  check<Key extends string = "locks">(key: Key = "locks" as Key): LockHealth<Key> {
    const { status, stores } = health();
    return { [key]: { status: status === "up" ? "up" : "down", stores } } as LockHealth<Key>;
  }
}

/** The methods of `LockModule`. */
export interface LockModuleMethods {
  /**
   * Calls `configure()` when the application starts.
   *
   * @param handshake written by the transformer. Without it, the application does not start, so that no tagged function runs unlocked
   * @throws {LockOptionError} if the options have `shutdownOn`. The start of the application rejects with all other errors of `configure()`
   */
  forRoot(options: LockModuleOptions, handshake?: "woven"): LockDynamicModule;

  /** Calls `configure()` when the application starts, with options that need other providers, as {@link forRoot} does. */
  forRootAsync<Injected extends readonly unknown[]>(
    options: LockModuleAsyncOptions<Injected>,
    handshake?: "woven",
  ): LockDynamicModule;
}

/**
 * Configures locks in an application of NestJS, ends them at its shutdown, and provides `LockHealthIndicator`. Import it once, in the
 * root module: `imports: [LockModule.forRoot({ redis })]`. Locks work from `onModuleInit()` on.
 */
export const LockModule: LockModuleMethods = {
  forRoot(options, handshake) {
    assertOptions(options);
    return moduleWith({ provide: LOCKS, useFactory: () => start(options, handshake) }, []);
  },
  forRootAsync<Injected extends readonly unknown[]>(
    { imports = [], inject = [], useFactory }: LockModuleAsyncOptions<Injected>,
    handshake?: "woven",
  ) {
    const useOptions = async (...injected: Injected): Promise<Locks> => {
      const options = await useFactory(...injected);
      assertOptions(options);
      return await start(options, handshake);
    };
    return moduleWith({ provide: LOCKS, useFactory: useOptions, inject }, imports);
  },
};

/** The class by which NestJS knows the module. Its log has this name. */
class LockRootModule {
  readonly configures = LOCKS;
}

function moduleWith(locks: object, imports: readonly unknown[]): LockDynamicModule {
  return {
    module: LockRootModule,
    global: true,
    imports: [...imports] as never[],
    providers: [locks, LockHealthIndicator] as never[],
    exports: [LOCKS, LockHealthIndicator] as never[],
  };
}

function assertOptions(options: LockModuleOptions): void {
  if (typeof options !== "object" || options === null) {
    throw new LockOptionError("Expected the options of LockModule to be an object, such as { redis: url }");
  }
  if (!("shutdownOn" in options)) return; // configure() reports other mistakes.
  throw new LockOptionError(
    "LockModule has no option `shutdownOn`, because NestJS handles signals. Fix: call app.enableShutdownHooks()",
  );
}

async function start(options: LockModuleOptions, handshake: "woven" | undefined): Promise<Locks> {
  const { ready: waits = false, ...configuration } = options;
  configure(configuration, handshake);
  try {
    if (waits !== false) await ready(waits === true ? {} : waits);
  } catch (error) {
    // NestJS calls no hook of an application that did not start. If somebody else has shut down, another application may have configured.
    if (!(error instanceof LockClosedError)) await shutdown({ patience: "0s" });
    throw error;
  }
  return new Locks();
}

/** Ends the locks with the application. */
class Locks {
  #ending: Promise<void> | undefined;

  /**
   * NestJS calls this after `onModuleDestroy()`, and before `onApplicationShutdown()`. If it calls it again, another application may have
   * configured locks since.
   */
  beforeApplicationShutdown(): Promise<void> {
    this.#ending ??= shutdown();
    return this.#ending;
  }
}
