import { addTransformer } from "./compilers";
import type { ConfigText } from "./config-text";
import { NOT_UNDERSTOOD, type Draft } from "./draft";
import type { Host, NextStep } from "./host";
import type { Project } from "./project";
import { BY_HAND, changeScripts, commandFor, hides } from "./scripts";
import { isPatchable } from "./typescripts";

const REGISTER = "--import lockweave/register";

const TSX: Host = {
  name: "tsx",
  evidence: (project) => (project.runs("tsx") ? "`tsx` in a script" : undefined),
  setUp(draft, project) {
    const left = changeScripts(draft, project, ({ program, rest }) => {
      if (program === "node" && /\btsx\b/.test(rest.join(" "))) return registered(program, rest);
      if (program !== "tsx") return hides("tsx", program, rest);
      return rest[0] === "watch"
        ? withRegister(["tsx", "watch"], rest.slice(1))
        : withRegister(["tsx"], rest);
    });
    tell(draft, left, `tsx ${REGISTER} ...`);
  },
  next: (_, __, lock) => running("npx", "tsx", REGISTER, lock),
  tryOut: (_, file) => [["--import", "tsx", "--import", "lockweave/register", file]],
};

const TS_NODE: Host = {
  name: "ts-node",
  evidence: (project) => (project.runs("ts-node(?:-transpile-only)?") ? "`ts-node` in a script" : undefined),
  setUp(draft, project) {
    const always = /"(?:transpileOnly|swc)"\s*:\s*true/.test(tsNodeSettings(draft.text("tsconfig.json")));
    let isChecked = false;
    const left = changeScripts(draft, project, ({ program, rest }) => {
      if (!/^ts-node(?:-transpile-only)?$/.test(program)) return hides("ts-node", program, rest);
      if (rest.includes("--esm")) return BY_HAND;
      const isTranspiled =
        always ||
        program !== "ts-node" ||
        rest.some((word) => /^(?:-T|--transpile-?[oO]nly|--swc)$/.test(word));
      if (!isTranspiled) isChecked = true;
      return isTranspiled && !rest.includes("lockweave/register")
        ? [program, "-r lockweave/register", ...rest].join(" ")
        : undefined;
    });
    if (isChecked) {
      addTransformer(draft, project);
      if (isPatchable(draft, project)) {
        draft.installDev("ts-patch@3");
        compileWithTsPatch(draft);
      }
    }
    tell(draft, left, "node --import ./ts-node-esm.mjs --import lockweave/register ...");
  },
  next: (project, draft) =>
    running(commandFor(project, draft, project.runs("ts-node") ? "ts-node" : "ts-node-transpile-only")),
  tryOut(project, file) {
    const isChecked = tsNodeSettings(project.read("tsconfig.json")).includes("ts-patch/compiler");
    return [[project.bin("ts-node"), ...(isChecked ? [] : ["-T", "-r", "lockweave/register"]), file]];
  },
};

function tsNodeSettings(tsconfig = ""): string {
  return /"ts-node"\s*:\s*\{[^}]*\}/.exec(tsconfig)?.[0] ?? "";
}

function compileWithTsPatch(draft: Draft): void {
  const compiler = '"ts-patch/compiler"';
  const isDone = draft.edit("tsconfig.json", (config) => {
    const root = config.root();
    if (root === undefined) return false;
    const settings = config.objectAt(root, "ts-node");
    if (settings === undefined) config.addProperties(root, { "ts-node": `{ "compiler": ${compiler} }` });
    else if (config.value(settings, "compiler") === undefined) config.addProperties(settings, { compiler });
    else return config.textOf(settings).includes("ts-patch/compiler");
    return true;
  });
  if (isDone) return;
  const lines = [`"ts-node": { "compiler": ${compiler} }`];
  draft.byHand.push({ file: "tsconfig.json", why: NOT_UNDERSTOOD, lines });
}

const NODE: Host = {
  name: "Node",
  evidence(project) {
    const script = project.scripts.find((text) => runsSources(project).test(text));
    return script === undefined ? undefined : `\`${script}\` in a script`;
  },
  setUp(draft, project) {
    changeScripts(draft, project, ({ program, rest }) =>
      program === "node" && runsSources(project).test(`node ${rest.join(" ")}`)
        ? registered(program, rest)
        : undefined,
    );
  },
  next: (_, __, lock) => running("node", REGISTER, lock),
  tryOut: (_, file) => [["--import", "lockweave/register", file]],
};

/** Where no compiler is, JavaScript is what is written. Else what lies in a directory of outputs was compiled. */
function runsSources(project: Project): RegExp {
  return project.isTypeScript
    ? /(?<![\w./@:-])node\s(?!.*\b(?:tsx|ts-node)\b)[^&|;]*\.[cm]?ts(?=\s|$)/
    : /(?<![\w./@:-])node\s[^&|;]*?(?<!\S)(?!\S*(?:dist|build|out)\/)[\w./-]+\.[cm]?js(?=\s|$)/;
}

const AVA: Host = {
  name: "ava",
  isForTests: true,
  evidence: (project) => (project.asksFor("ava") ? "`ava` in package.json" : undefined),
  setUp(draft, project) {
    const file = project.config("ava.config");
    const isDone =
      file === undefined
        ? draft.edit("package.json", (config) => registerInAva(config))
        : draft.text(file)?.includes("lockweave/register");
    if (isDone) return;
    const lines = project.isModule
      ? ['nodeArguments: ["--import=tsx", "--import=lockweave/register"]']
      : ['require: ["ts-node/register/transpile-only", "lockweave/register"]'];
    draft.byHand.push({ file: file ?? "package.json", why: NOT_UNDERSTOOD, lines });
  },
  next: (project, draft) => ({
    command: commandFor(project, draft, "ava"),
    about: "runs the tests with their locks; nothing is written",
  }),
};

function running(...words: readonly string[]): NextStep {
  return {
    command: words.join(" "),
    about: "runs it with its locks, woven as it is loaded; nothing is written",
  };
}

function registerInAva(config: ConfigText): boolean {
  const root = config.root();
  const ava = root && config.objectAt(root, "ava");
  if (ava === undefined) return false;
  if (config.textOf(ava).includes("lockweave/register")) return true;
  const required = config.arrayAt(ava, "require");
  const nodeArguments = config.arrayAt(ava, "nodeArguments");
  if (required !== undefined) config.addElement(required, '"lockweave/register"', "last");
  else if (nodeArguments !== undefined)
    config.addElement(nodeArguments, '"--import=lockweave/register"', "last");
  else return false;
  return true;
}

function registered(program: string, rest: readonly string[]): string | undefined {
  return withRegister([program], rest);
}

function withRegister(start: readonly string[], rest: readonly string[]): string | undefined {
  return rest.some((word) => word.endsWith("lockweave/register"))
    ? undefined
    : [...start, REGISTER, ...rest].join(" ");
}

function tell(draft: Draft, left: readonly string[], line: string): void {
  if (left.length === 0) return;
  const names = left.map((name) => `\`${name}\``).join(", ");
  draft.byHand.push({ file: "package.json", why: `Not understood: ${names}. There, run`, lines: [line] });
}

export const RUNNERS: readonly Host[] = [TSX, TS_NODE, NODE, AVA];

/** What runs JavaScript that nobody compiles. */
export const PLAIN_NODE = NODE;
