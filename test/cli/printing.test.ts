import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import test from "ava";
import ts from "typescript";
import { block, bold, joined, padded, safe } from "../../transformer/terminal/printer";

// All output of the command line goes through one file.

const TRANSFORMER = join(__dirname, "../../transformer");
const PRINTER = join("terminal", "printer.ts");

/** The page of `ui` runs in a browser. */
const files = ["cli", "console", "terminal"]
  .flatMap((folder) =>
    readdirSync(join(TRANSFORMER, folder), { recursive: true, encoding: "utf8" }).map((file) =>
      join(folder, file),
    ),
  )
  .filter((file) => file.endsWith(".ts") && !/[\\/]page[\\/]/.test(file));

/** The places in which a file prints by itself, or starts a process that prints to our terminal. */
function printsIn(file: string, text: string): string[] {
  const source = ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true);
  const found: string[] = [];
  const add = (node: ts.Node): void => {
    const { line } = source.getLineAndCharacterOfPosition(node.getStart(source));
    found.push(`${file}:${line + 1}: ${node.getText(source)}`);
  };
  const visit = (node: ts.Node): void => {
    if (ts.isIdentifier(node) && ["stdout", "stderr", "console"].includes(node.text)) {
      const { parent } = node;
      // The output of a child process is a string.
      const isOfChild =
        ts.isBindingElement(parent) && !/= process\b/.test(parent.parent.parent.getText(source));
      const isUse = ts.isBinaryExpression(parent) && parent.operatorToken.getText(source) === "+";
      if (!isOfChild && !isUse) add(node);
    }
    if (ts.isStringLiteralLike(node) && /^(?:node:)?(?:tty|console)$/.test(node.text)) add(node);
    if (ts.isStringLiteralLike(node) && node.text === "inherit") add(node);
    ts.forEachChild(node, visit);
  };
  visit(source);
  return found;
}

test("no file of the command line prints except printer.ts", (t) => {
  t.true(files.length > 40);
  const found = files
    .filter((file) => file !== PRINTER)
    .flatMap((file) => printsIn(file, readFileSync(join(TRANSFORMER, file), "utf8")));
  // The user has agreed to run the package manager, so it may print.
  t.deepEqual(
    found.map((place) => place.replace(/:\d+:/, ":")),
    [`${join("cli", "init", "init.ts")}: "inherit"`],
  );
});

test("the search for prints finds each way to print", (t) => {
  for (const way of [
    'process.stdout.write("a");',
    "const { stderr } = process;",
    'import { stdout } from "node:process";',
    'console.log("a");',
    'import { WriteStream } from "node:tty";',
    'spawn("a", { stdio: "inherit" });',
  ])
    t.is(printsIn("a.ts", way).length, 1, way);
});

function textOf(value: ReturnType<typeof safe>): string {
  return value.pieces.map(({ text }) => text).join("");
}

test("safe escapes inserted values onto one line, but not the text of the template", (t) => {
  t.is(textOf(safe`a\n${"b\n\u001B[2J\u{E0041}"}`), String.raw`a${"\n"}b\u000a\u001b[2J\udb40\udc41`);
  t.is(textOf(safe`${safe`a\n`}${7}`), "a\n7");
  t.is(textOf(joined(["a\r", bold("b")], ", ")), String.raw`a\u000d, b`);
});

test("block keeps line breaks and tabs, and escapes other controls", (t) => {
  t.is(textOf(block("a\r\n\tb\u202E\n")), String.raw`a${"\n\t"}b\u202e${"\n"}`);
});

test("the length of a string includes its escapes", (t) => {
  t.is(safe`${"\u001B"}`.length, 6);
  t.is(textOf(padded("\u001B", 8)), String.raw`\u001b  `);
});

test("the printer hides the credentials of URLs", (t) => {
  t.is(textOf(safe`at ${"redis://app:hunter2@host:1"}`), "at redis://***@host:1");
  t.is(textOf(block("at\nredis://host?password=hunter2")), "at\nredis://host?password=***");
});
