import { readdirSync } from "node:fs";
import { join } from "node:path";

/** The tests of the matrix are skipped without it. */
const AVA = `${process.env["MATRIX"] === undefined ? "" : "MATRIX=1 "}npx ava`;
/** The name of a failed run if no failed test is known. */
export const WHOLE_RUN = "AVA";
/** AVA prints this line before it repeats each failure in full. */
const END = "  ─";
const PASSED = /^ {2}✔ /;
const SKIPPED = /^ {2}- \[skip\] /;
const FAILED = /^ {2}✘ \[(?:fail|unexpected pass)\]: (.*)$/;
/** A test that had not finished when AVA gave up. */
const PENDING = /^ {2}◌ (.*)$/;
/** A hook has no test that `--match` could select. */
const HOOK = /^(?:before|after|beforeEach|afterEach)(?:\.always)? hook\b/;
/** A file can fail outside of its tests: it exits, an exception escapes, something keeps its process alive. */
const FILE_FAILED =
  /^ {2}(?:✘ (?!\[)|Uncaught exception in|Unhandled rejection in|Failed to exit).*?(\S+\.test\.\w+)/;
/** These characters mean something to a shell, or to `--match`. In a pattern, `*` stands for any text. */
const SPECIAL = /["'`$\\!%*]+/g;
const SEPARATOR = " › ";

/** Counts the tests in the output of AVA, and collects what failed. */
export class Summary {
  #passed = 0;
  #skipped = 0;
  #isAtEnd = false;
  /** A failed test's title, and behind it the message of its error. AVA prints both on one line. */
  #failures = [];
  #pending = [];
  #titles = new Set();
  #files = new Set();

  /** The tests that have passed so far. */
  get passed() {
    return this.#passed;
  }

  /** Whether AVA has printed the results of all tests. */
  get isAtEnd() {
    return this.#isAtEnd;
  }

  /** @param line a line of AVA's output, without colors */
  read(line) {
    if (line === END) this.#isAtEnd = true;
    else if (this.#isAtEnd) this.#readTitle(line.trim());
    else this.#readResult(line);
  }

  #readResult(line) {
    if (PASSED.test(line)) this.#passed += 1;
    else if (SKIPPED.test(line)) this.#skipped += 1;
    else {
      const [, failure] = FAILED.exec(line) ?? [];
      if (failure !== undefined) this.#failures.push(failure);
      const [, pending] = PENDING.exec(line) ?? [];
      if (pending !== undefined) this.#pending.push(pending);
      const [, file] = FILE_FAILED.exec(line) ?? [];
      if (file !== undefined) this.#files.add(file);
    }
  }

  /** Each failure is repeated below its title alone, which tells the title from the message. */
  #readTitle(line) {
    if (line !== "" && this.#failures.some((failure) => failure.startsWith(line))) this.#titles.add(line);
  }

  /** Whether AVA ended the run before all tests had finished, so that nobody knows what else would have failed. */
  get isCutOff() {
    return this.#pending.length > 0 || !this.#isAtEnd;
  }

  /**
   * Returns what failed: each name, and the command that repeats it alone. Without a known failure, the command repeats the whole run.
   *
   * @param args the arguments that AVA got
   * @param code the exit code of AVA
   */
  failures(args, code) {
    const titles = [...this.#failures.map((failure) => this.#titleIn(failure)), ...this.#pending];
    const files = [...this.#files];
    const commands = titles.map((title) => [title, commandFor(title, args)]);
    for (const file of files) {
      const command = `${AVA} ${file}`;
      const isListed = commands.some(([, listed]) => listed === command); // A failed hook is.
      if (!isListed) commands.push([file, command]);
    }
    if (commands.length === 0 && code !== 0) commands.push([WHOLE_RUN, [AVA, ...args].join(" ")]);
    return commands;
  }

  /** Returns the lines that end the output of a run. */
  lines(failures) {
    const failed = failures.length;
    return [
      ...(failed === 0 ? [] : ["Failed. Repeat each one alone:"]),
      ...failures.flatMap(([name, command]) => ["", `  ${name}`, `    ${command}`]),
      "",
      [
        `${this.#passed} passed`,
        `${failed} failed`,
        ...(this.#skipped === 0 ? [] : [`${this.#skipped} skipped`]),
      ].join(", "),
    ];
  }

  #titleIn(failure) {
    const titles = [...this.#titles].filter((title) => failure.startsWith(title));
    return titles.toSorted((one, other) => other.length - one.length)[0] ?? failure;
  }
}

/** Returns the command that runs one test alone. */
function commandFor(label, args) {
  const found = fileOf(label);
  const title = found === undefined ? label : label.slice(found.prefix.length);
  const files = found === undefined ? args : [found.file];
  const match = HOOK.test(title) ? [] : [`--match "${title.replaceAll(SPECIAL, "*")}"`];
  return [AVA, ...files, ...match].join(" ");
}

/** AVA starts a title with the parts of its file's path. A run of a single file has no such prefix. */
function fileOf(label) {
  const found = testFiles().flatMap((file) => {
    const parts = file.replace(/\.test\.\w+$/, "").split("/");
    return parts.map((_part, from) => ({ file, prefix: parts.slice(from).join(SEPARATOR) + SEPARATOR }));
  });
  const fitting = found.filter(({ prefix }) => label.startsWith(prefix));
  return fitting.toSorted((one, other) => other.prefix.length - one.prefix.length)[0];
}

function testFiles() {
  return readdirSync("test", { recursive: true, encoding: "utf8" })
    .filter((file) => /\.test\.\w+$/.test(file))
    .map((file) => join("test", file).replaceAll("\\", "/"));
}
