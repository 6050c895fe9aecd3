// A worker that AVA shares among all test files. It runs commands in child processes (`command-server.cjs`), one for each
// core and one more, because a command may wait. A command goes to the process with the fewest pending commands.
import { fork } from "node:child_process";
import { availableParallelism } from "node:os";
import { fileURLToPath } from "node:url";

const fileOf = (name) => fileURLToPath(new URL(name, import.meta.url));
const SERVER = fileOf("./command-server.cjs");
const EXEC_ARGV = [
  "--max-semi-space-size=64",
  `--require=${fileOf("./code-cache.cjs")}`,
  `--require=${fileOf("./ts-patch-cache.cjs")}`,
];
const MOST_SERVERS = availableParallelism() + 1;
/** A process is replaced after this many commands, because compilers leak some memory. */
const MOST_COMMANDS = 250;

class Server {
  #child = fork(SERVER, { execArgv: EXEC_ARGV, stdio: ["ignore", "inherit", "inherit", "ipc"] });
  #sent = 0;
  #waiting = new Map();

  constructor() {
    this.#child.on("message", ({ id, ...finished }) => this.#end(id, finished));
    this.#child.once("exit", (code, signal) => {
      servers.delete(this);
      const stderr = `the server of commands ended with ${code ?? signal}`;
      for (const id of this.#waiting.keys()) this.#end(id, { code, stdout: "", stderr });
    });
  }

  get load() {
    return this.#waiting.size;
  }

  run(command) {
    this.#sent += 1;
    const id = this.#sent;
    const finished = new Promise((resolve) => this.#waiting.set(id, resolve));
    this.#child.send({ id, ...command });
    if (id === MOST_COMMANDS) servers.delete(this);
    return finished;
  }

  #end(id, finished) {
    this.#waiting.get(id)?.(finished);
    this.#waiting.delete(id);
    if (this.#sent >= MOST_COMMANDS && this.load === 0 && this.#child.connected) this.#child.disconnect();
  }
}

const servers = new Set();

function leastBusy() {
  const [first] = Array.from(servers).toSorted((one, other) => one.load - other.load);
  if (first !== undefined && (first.load === 0 || servers.size >= MOST_SERVERS)) return first;
  const added = new Server();
  servers.add(added);
  return added;
}

export default async function commandPool({ negotiateProtocol }) {
  const tests = negotiateProtocol(["ava-4"]).ready();
  for await (const message of tests.subscribe()) {
    void leastBusy()
      .run(message.data)
      .then((finished) => message.reply(finished));
  }
}
