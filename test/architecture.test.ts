import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative, sep } from "node:path";
import test from "ava";
import ts from "typescript";

interface House {
  /** The rooms, from the ground up, and the rooms that each may look into. */
  readonly rooms: Readonly<Record<string, readonly string[]>>;
  /** What stands in no room, and all may look at: it has no neighbours but its like. All else there is a way in. */
  readonly ground: readonly string[];
}

/** That no files are in a circle is the linter's business. */
const HOUSES: Readonly<Record<string, House>> = {
  transformer: {
    rooms: {
      text: [],
      parser: [],
      read: ["text", "parser"],
      weave: ["text", "parser", "read"],
      analyze: ["text", "read"],
      verify: ["text", "parser", "read", "weave", "analyze"],
      hosts: ["text", "parser", "read", "weave", "analyze", "verify"],
      cli: ["text", "parser", "read", "weave", "analyze", "verify", "hosts"],
    },
    ground: [],
  },
  runtime: {
    rooms: {
      stores: [],
      commands: ["stores"],
      queue: ["stores", "commands"],
      lock: ["stores", "queue"],
    },
    ground: [
      "clock",
      "conflicts",
      "duration",
      "errors",
      "fifo",
      "format-value",
      "json-field",
      "key",
      "limits",
      "logger",
      "node-crypto",
      "on-signals",
      "options",
      "recycling-map",
      "request-id",
      "root-context",
      "suspension",
      "unsupported",
      "uuid",
    ],
  },
};

/** What a house may take from another one. */
const NEIGHBOURS: Readonly<Record<string, readonly string[]>> = {
  // `lockweave list` shows keys as the runtime makes them. The limits that both halves know are written once,
  // and so is what does not go together. So is where neither can run.
  // Who looks at a server from outside knows the names and values that stand there, and where it is.
  transformer: [
    "runtime/announced",
    "runtime/errors",
    "runtime/index",
    "runtime/key",
    "runtime/limits",
    "runtime/options",
    "runtime/conflicts",
    "runtime/format-value",
    "runtime/stores/redis/address",
    "runtime/stores/redis/keys",
    "runtime/stores/value",
    "runtime/unsupported",
  ],
  // The build writes the version in place of this.
  runtime: ["package.json"],
};

const REPOSITORY = join(__dirname, "..");

interface Import {
  readonly from: string;
  /** A path in the repository, without its ending. */
  readonly to: string;
}

function importsIn(house: string): Import[] {
  return readdirSync(join(REPOSITORY, house), { recursive: true, encoding: "utf8" })
    .filter((file) => /\.m?ts$/.test(file))
    .flatMap((file) => {
      const from = join(house, file);
      const { importedFiles } = ts.preProcessFile(readFileSync(join(REPOSITORY, from), "utf8"), true, true);
      return importedFiles
        .filter(({ fileName }) => fileName.startsWith("."))
        .map(({ fileName }) => ({ from, to: slashed(join(dirname(from), fileName.replace(/\.js$/, ""))) }));
    });
}

function slashed(path: string): string {
  return relative(".", path).split(sep).join("/");
}

/** The room of a file; undefined for the way in. */
function roomOf(path: string): string | undefined {
  const [, room, file] = path.split("/");
  return file === undefined ? undefined : room;
}

for (const [house, { rooms, ground }] of Object.entries(HOUSES)) {
  const all = importsIn(house);
  const isGround = (path: string): boolean => ground.includes(path.split("/")[1] ?? "");

  test(`the rooms of ${house}/ look only into those below them, types included`, (t) => {
    t.true(all.length > 50);
    const wrong = all.filter(({ from, to }) => {
      const [room, other] = [roomOf(from), roomOf(to)];
      if (!to.startsWith(`${house}/`) || isGround(to)) return false;
      if (room === undefined) return isGround(from.replace(/\.m?ts$/, ""));
      return room !== other && (other === undefined || !rooms[room]?.includes(other));
    });
    t.deepEqual(wrong, []);
  });

  test(`each file of ${house}/ is in a room, a part of the ground or a way in`, (t) => {
    const strange = new Set(all.map(({ from }) => roomOf(from)).filter((room) => room !== undefined));
    t.deepEqual(
      [...strange].filter((room) => !(room in rooms)),
      [],
    );
  });

  test(`${house}/ takes nothing from its neighbours but what is said here`, (t) => {
    const taken = new Set(all.map(({ to }) => to).filter((to) => !to.startsWith(`${house}/`)));
    t.deepEqual([...taken].toSorted(), [...(NEIGHBOURS[house] ?? [])].toSorted());
  });
}
