import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative, sep } from "node:path";
import test from "ava";
import ts from "typescript";

/**
 * The rooms of each house, from the ground up, and the rooms that each may look into. What stands in no room
 * is the way in. That no files are in a circle is the linter's business.
 */
const HOUSES: Readonly<Record<string, Readonly<Record<string, readonly string[]>>>> = {
  transformer: {
    text: [],
    read: ["text"],
    weave: ["text", "read"],
    verify: ["text", "read", "weave"],
    hosts: ["text", "read", "weave", "verify"],
    cli: ["text", "read", "weave", "verify", "hosts"],
  },
};

/** What a house may take from another one. */
const NEIGHBOURS: Readonly<Record<string, readonly string[]>> = {
  // `lockweave list` shows keys as the runtime makes them.
  transformer: ["runtime/key"],
};

const REPOSITORY = join(__dirname, "..");

interface Import {
  readonly from: string;
  /** A path in the repository, without its ending. */
  readonly to: string;
}

function importsIn(house: string): Import[] {
  return readdirSync(join(REPOSITORY, house), { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(".ts"))
    .flatMap((file) => {
      const from = join(house, file);
      const { importedFiles } = ts.preProcessFile(readFileSync(join(REPOSITORY, from), "utf8"), true, true);
      return importedFiles
        .filter(({ fileName }) => fileName.startsWith("."))
        .map(({ fileName }) => ({ from, to: slashed(join(dirname(from), fileName)) }));
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

for (const [house, rooms] of Object.entries(HOUSES)) {
  const all = importsIn(house);

  test(`the rooms of ${house}/ look only into those below them, types included`, (t) => {
    t.true(all.length > 50);
    const wrong = all.filter(({ from, to }) => {
      const [room, other] = [roomOf(from), roomOf(to)];
      if (!to.startsWith(`${house}/`) || room === undefined || room === other) return false;
      return other === undefined || !rooms[room]?.includes(other);
    });
    t.deepEqual(wrong, []);
  });

  test(`each file of ${house}/ is in a room or a way in`, (t) => {
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
