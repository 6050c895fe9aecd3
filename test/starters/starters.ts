import type { SetName } from "../hosts/installed";
import { ASTRO } from "./astro";
import { FASTIFY } from "./fastify";
import { HONO } from "./hono";
import { LAMBDA } from "./lambda";
import { NEST } from "./nest";
import { NEXT, TRPC } from "./next";
import { NUXT } from "./nuxt";
import { REACT_ROUTER } from "./react-router";
import { BUN, DENO } from "./runtimes";
import { SVELTEKIT } from "./sveltekit";
import { TEST_RUNNERS } from "./test-runners";
import { VITE } from "./vite";
import { WORKSPACES } from "./workspaces";

/** A project as its npm starter creates it, with one tagged function. */
export interface Starter {
  readonly name: string;
  /**
   * The command line that creates the project in `app`, with a pinned version. Without it, `files` are the whole project.
   */
  readonly create?: string;
  /** Why the project is written by hand. */
  readonly byHand?: string;
  /** Packages of npm with programs that the commands below need. */
  readonly tools?: readonly SetName[];
  /** Installs the packed Lockweave, and more if the project needs it. `{lockweave}` is the path of the tarball. */
  readonly install?: string;
  /** The command that runs `lockweave`, if it is not `npx`. */
  readonly runner?: string;
  /** The directory of the application, if it is not the project itself. `init`, `check`, and `start` run there. */
  readonly home?: string;
  /** Files of the user: the tagged function, its caller, and `configure()`. The paths are relative to the project. */
  readonly files: Files;
  /** The user's changes to files of the starter. */
  readonly edit?: Readonly<Record<string, (text: string) => string>>;
  /** The user's changes that `init` asks for. */
  readonly byUser?: Readonly<Record<string, (text: string) => string>>;
  /** The file with the tagged function. */
  readonly tagged: string;
  readonly build?: string;
  readonly start: {
    /** `{port}` is the port to listen to. The environment has `REDIS_URL`, `PORT`, and `GATE`. */
    readonly command: string;
    /** The route that calls the tagged function with `{gate}`. Without it, the command calls it with the variable `GATE`. */
    readonly route?: string;
  };
  /** Its own unit tests. */
  readonly test?: string;
  readonly lint?: string;
  /** The arguments of `lockweave check`. `undefined` if nothing is built. */
  readonly check?: string;
  /** The command that reports a wrong tag, if it is not that of `build`. */
  readonly reports?: string;
}

export type Files = Readonly<Record<string, string>>;

export const STARTERS: readonly Starter[] = [
  VITE,
  ...NEST,
  NEXT,
  SVELTEKIT,
  REACT_ROUTER,
  ASTRO,
  HONO,
  FASTIFY,
  ...TEST_RUNNERS,
  LAMBDA,
  TRPC,
  ...WORKSPACES,
  NUXT,
  BUN,
  DENO,
];
