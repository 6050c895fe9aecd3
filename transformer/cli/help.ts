import { COMMANDS, commandInfo, OPTIONS, type OptionName } from "./commands";

const WIDTH = 100;

const EXIT_CODES = `Exit codes:
  0  Success
  1  A tag is wrong, the output lacks a lock, check finds too many warnings, init leaves a change to you, or the result of eject would not compile
  2  The command could not run, because of wrong usage, an unreachable server, or a missing compiler
  3  Nothing was changed, because nobody confirmed (init, eject, release)
  \`build\` exits with the code of the compiler.
`;

/** Returns the help of a command, or without one, the list of all commands. */
export function helpOf(name?: string): string {
  const command = commandInfo(name);
  if (name === undefined || command === undefined) return overview();
  const { usage, summary, options, about } = command;
  const words = ["lockweave", name, ...(usage === undefined ? [] : [usage]), "[options]"];
  const shown: OptionName[] = [...options, "help"];
  const rows = shown.map((option) => [
    flagsOf(option),
    option === "help" ? "Show this help" : (about?.[option] ?? OPTIONS[option].about),
  ]);
  return `Usage: ${words.join(" ")}\n\n${summary}\n\nOptions:\n${columns(rows)}`;
}

function overview(): string {
  const rows = Object.entries(COMMANDS).map(([name, { usage = "", summary, group }]) => ({
    group,
    row: [`${name} ${usage}`.trim(), summary],
  }));
  const groups = [...new Set(rows.map(({ group }) => group))];
  const width = widthOf(rows.map(({ row }) => row));
  const lists = groups.map((group) => {
    const inGroup = rows.filter((one) => one.group === group).map(({ row }) => row);
    return `${group}:\n${columns(inGroup, width)}`;
  });
  const options = columns(
    (["help", "version"] as const).map((option) => [flagsOf(option), OPTIONS[option].about]),
    width,
  );
  return [
    "Usage: lockweave <command> [options]\n",
    ...lists,
    `Options:\n${options}`,
    "Run `lockweave <command> --help` to see the options of a command.\n",
    EXIT_CODES,
  ].join("\n");
}

/** Returns the flags of an option, such as `-p, --project <path>`. */
function flagsOf(name: OptionName): string {
  const option = OPTIONS[name];
  const short = "short" in option ? `-${option.short}, ` : "    ";
  return `${short}--${name}${"value" in option ? ` <${option.value}>` : ""}`;
}

function widthOf(rows: readonly (readonly string[])[]): number {
  return Math.max(...rows.map(([term = ""]) => term.length));
}

/** Returns one row a line, each with a term and its description. A long description continues below its start. */
function columns(rows: readonly (readonly string[])[], width = widthOf(rows)): string {
  return rows
    .map(([term = "", description = ""]) => {
      const lines = wrapped(description, WIDTH - width - 4);
      const continued = `\n${" ".repeat(width + 4)}`;
      return `  ${term.padEnd(width)}  ${lines.join(continued)}\n`;
    })
    .join("");
}

function wrapped(text: string, width: number): string[] {
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(" ")) {
    if (line !== "" && line.length + 1 + word.length > width) {
      lines.push(line);
      line = word;
    } else {
      line = line === "" ? word : `${line} ${word}`;
    }
  }
  return [...lines, line];
}
