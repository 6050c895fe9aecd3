import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { delimiter } from "node:path";
import { stripVTControlCharacters } from "node:util";
import type { Writable } from "node:stream";

/** The directory and the programs with which commands run. */
export interface Shell {
  readonly dir: string;
  /** Directories with programs, before those of the machine. */
  readonly path: readonly string[];
}

/** A command line and its output. */
export interface Output {
  readonly command: string;
  readonly code: number | null;
  readonly text: string;
}

export interface Running {
  readonly output: Promise<Output>;
  /** The output so far. */
  readonly text: string;
  readonly hasEnded: boolean;
  kill(): void;
}

/** Runs the command line, and kills its whole process group when this process ends, however it ends. */
const TIED_TO_US = '(read -r _ <&3 || kill -9 -- -$$) & sh -c "$1" 3<&-; code=$?; kill $!; exit $code';

const COMMAND_WITHIN_MS = 15 * 60_000;

export function start({ dir, path }: Shell, command: string, env: NodeJS.ProcessEnv = {}): Running {
  const child = spawn("sh", ["-c", TIED_TO_US, "sh", command], {
    cwd: dir,
    env: { ...environment(path), ...env },
    detached: true,
    stdio: ["ignore", "pipe", "pipe", "pipe"],
  });
  (child.stdio[3] as Writable).on("error", () => {}); // The command may end first.
  let text = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding("utf8").on("data", (more: string) => (text += more));
  }
  const kill = (): void => killGroup(child);
  const timer = setTimeout(kill, COMMAND_WITHIN_MS);
  const output = once(child, "close").then(([code]: unknown[]) => {
    clearTimeout(timer);
    return { command, code: code as number | null, text: stripVTControlCharacters(text) };
  });
  return {
    output,
    get text() {
      return stripVTControlCharacters(text);
    },
    get hasEnded() {
      return child.exitCode !== null || child.signalCode !== null;
    },
    kill,
  };
}

/** Runs the command line to its end. */
export function run(shell: Shell, command: string, env?: NodeJS.ProcessEnv): Promise<Output> {
  return start(shell, command, env).output;
}

function killGroup({ pid }: ChildProcess): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, "SIGKILL");
  } catch {
    // The group has ended.
  }
}

/** The environment without the variables of `npm run`, and with settings that stop tools from prompting or reporting. */
function environment(path: readonly string[]): NodeJS.ProcessEnv {
  const own = Object.entries(process.env).filter(
    ([name]) =>
      !/^(?:npm_(?:package|lifecycle|command|execpath|node|config_local_prefix)|NODE_OPTIONS|INIT_CWD)/.test(
        name,
      ),
  );
  return {
    ...Object.fromEntries(own),
    PATH: [...path, process.env["PATH"]].join(delimiter),
    CI: "1",
    NO_COLOR: "1",
    npm_config_yes: "true",
    npm_config_audit: "false",
    npm_config_fund: "false",
    npm_config_update_notifier: "false",
    npm_config_prefer_offline: "true",
    NEXT_TELEMETRY_DISABLED: "1",
    ASTRO_TELEMETRY_DISABLED: "1",
    NUXT_TELEMETRY_DISABLED: "1",
    TURBO_TELEMETRY_DISABLED: "1",
    NX_DAEMON: "false",
    NX_NO_CLOUD: "true",
  };
}
