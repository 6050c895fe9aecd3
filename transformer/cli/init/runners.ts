import { addTransformer } from "./compilers";
import type { ConfigText } from "./config-text";
import { NOT_UNDERSTOOD, type Draft } from "./draft";
import type { Host, NextStep } from "./host";
import { NEST_SWC } from "./nest";
import type { Project } from "./project";
import { DENO } from "./runtimes";
import { BY_HAND, changeScripts, commandFor, hides, notUnderstood } from "./scripts";
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
    reportScripts(draft, left, `tsx ${REGISTER} ...`);
  },
  next: (project, _, lock) => running(project.running("tsx", REGISTER, lock)),
  tryOut: (_, file) => [["--import", "tsx", "--import", "lockweave/register", file]],
};

const TS_NODE: Host = {
  name: "ts-node",
  evidence(project) {
    if (project.runs(TS_NODE_PROGRAM)) return "`ts-node` in a script";
    // NestJS's starter also has such a script, but it gets a patched TypeScript.
    return preloadsTsNode(project) && !project.dependsOn("@nestjs/core")
      ? "`ts-node/register` in a script"
      : undefined;
  },
  setUp(draft, project) {
    const always = transpilesAlways(draft);
    let isChecked = false;
    const left = changeScripts(draft, project, ({ program, rest }) => {
      const preload = rest.findIndex((word) => TS_NODE_PRELOAD.test(word));
      if (preload === -1 && !/^ts-node(?:-transpile-only)?$/.test(program))
        return hides("ts-node", program, rest);
      if (rest.includes("--esm")) return BY_HAND;
      const isTranspiled =
        always ||
        (preload === -1 && program !== "ts-node") ||
        rest.some((word) =>
          /^(?:-T|--transpile-?[oO]nly|--swc)$|ts-node\/register\/transpile-only$/.test(word),
        );
      if (!isTranspiled) isChecked = true;
      if (!isTranspiled || rest.includes("lockweave/register")) return undefined;
      const words = [program, ...rest];
      return words.toSpliced(preload + 2, 0, "-r lockweave/register").join(" ");
    });
    if (isChecked) checkWithTsPatch(draft, project);
    reportScripts(draft, left, "node --import ./ts-node-esm.mjs --import lockweave/register ...");
  },
  next(project, draft) {
    const program = project.runs("ts-node") ? "ts-node" : "ts-node-transpile-only";
    return running(
      commandFor(
        project,
        draft,
        project.runs(TS_NODE_PROGRAM) ? program : "ts-node/register(?:/transpile-only)?",
      ),
    );
  },
  tryOut(project, file) {
    const isChecked = tsNodeSettings(project.read("tsconfig.json")).includes("ts-patch/compiler");
    return [[project.bin("ts-node"), ...(isChecked ? [] : ["-T", "-r", "lockweave/register"]), file]];
  },
};

const TS_NODE_PROGRAM = "ts-node(?:-transpile-only)?";
/** An argument that makes another program, such as Node or Mocha, compile with ts-node. */
const TS_NODE_PRELOAD = /^(?:--\w+=|-r=)?ts-node\/register(?:\/transpile-only)?$/;

function preloadsTsNode(project: Project): boolean {
  return project.scripts.some((script) => script.split(/\s+/).some((word) => TS_NODE_PRELOAD.test(word)));
}

/** Whether tsconfig.json tells ts-node not to check types. */
function transpilesAlways(draft: Draft): boolean {
  return /"(?:transpileOnly|swc)"\s*:\s*true/.test(tsNodeSettings(draft.text("tsconfig.json")));
}

/** Makes ts-node compile with a TypeScript that weaves. */
function checkWithTsPatch(draft: Draft, project: Project): void {
  addTransformer(draft, project);
  if (!isPatchable(draft, project)) return;
  draft.installDev("ts-patch@3");
  compileWithTsPatch(draft);
}

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

/** Matches a script that runs sources. Without TypeScript, the sources are JavaScript outside of output directories. */
function runsSources(project: Project): RegExp {
  return project.isTypeScript
    ? /(?<![\w./@:-])node\s(?!.*\b(?:tsx|ts-node)\b)[^&|;]*\.[cm]?ts(?=\s|$)/
    : /(?<![\w./@:-])node\s[^&|;]*?(?<!\S)(?!\S*(?:dist|build|out)\/)[\w./-]+\.[cm]?js(?=\s|$)/;
}

const AVA: Host = {
  name: "ava",
  isForTests: true,
  evidence: (project) => (project.dependsOn("ava") ? "`ava` in package.json" : undefined),
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
    about: "runs the tests with their locks; no file is written",
  }),
};

const MOCHA: Host = {
  name: "Mocha",
  isForTests: true,
  evidence(project) {
    if (!project.dependsOn("mocha")) return undefined;
    // Without one of these names in its settings, Mocha runs the output of a compiler.
    const isCompiled = project.isCompiled && !/\btsx\b|ts-node|\.[cm]?ts\b/.test(mochaSettings(project));
    return isCompiled ? undefined : "`mocha` in package.json";
  },
  setUp(draft, project) {
    const settings = mochaSettings(project);
    const isChecked = /ts-node\/register(?!\/)/.test(settings) && !transpilesAlways(draft);
    if (isChecked) {
      checkWithTsPatch(draft, project);
      return;
    }
    if (settings.includes("lockweave/register")) return;
    const file = mochaFile(project);
    const isDone =
      file === undefined
        ? registerInMochaScripts(draft, project)
        : draft.edit(file, (config) => registerInMocha(config, file));
    if (isDone) return;
    draft.byHand.push({
      file: file ?? "package.json",
      why: NOT_UNDERSTOOD,
      lines: ['"require": ["lockweave/register"]'],
    });
  },
  next: (project, draft) => ({
    command: commandFor(project, draft, "mocha"),
    about: "runs the tests with their locks; no file is written",
  }),
};

/** Returns the file with Mocha's settings. Mocha reads only the first one that exists. */
function mochaFile(project: Project): string | undefined {
  const names = ["js", "cjs", "mjs", "yaml", "yml", "jsonc", "json"].map(
    (extension) => `.mocharc.${extension}`,
  );
  return (
    names.find((name) => project.files.includes(name)) ??
    ("mocha" in project.manifest ? "package.json" : undefined)
  );
}

/** Returns all text that may configure Mocha. */
function mochaSettings(project: Project): string {
  const file = mochaFile(project);
  const text = file === "package.json" ? JSON.stringify(project.manifest["mocha"]) : undefined;
  const scripts = project.scripts.filter((script) => /\bmocha\b/.test(script));
  return [text ?? (file === undefined ? "" : (project.read(file) ?? "")), ...scripts].join("\n");
}

function registerInMocha(config: ConfigText, file: string): boolean {
  const root = config.root();
  const settings = root && (file === "package.json" ? config.objectAt(root, "mocha") : root);
  if (settings === undefined || !config.isWhole(settings)) return false;
  const required = config.value(settings, "require");
  if (required === undefined) {
    config.addProperties(settings, { require: '["lockweave/register"]' });
    return true;
  }
  const list = config.arrayAt(settings, "require");
  const text = config.textOf(required);
  if (list !== undefined) config.addElement(list, '"lockweave/register"', "last");
  else if (/^["']/.test(text)) config.replace(required, `[${text}, "lockweave/register"]`);
  else return false;
  return true;
}

/** Adds the hook after the other modules that the command loads, because these compile. */
function registerInMochaScripts(draft: Draft, project: Project): boolean {
  const left = changeScripts(draft, project, ({ program, rest }) => {
    if (program !== "mocha") return hides("mocha", program, rest);
    const last = rest.findLastIndex((word) => /^(?:-r|--require|--import)$/.test(word));
    return [program, ...rest].toSpliced(last === -1 ? 1 : last + 3, 0, "-r lockweave/register").join(" ");
  });
  return left.length === 0 && project.runs("mocha");
}

function running(...words: readonly string[]): NextStep {
  return {
    command: words.join(" "),
    about: "runs it with its locks, which are woven at load time; no file is written",
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

function reportScripts(draft: Draft, left: readonly string[], line: string): void {
  if (left.length === 0) return;
  draft.byHand.push({ file: "package.json", why: notUnderstood(left, "run"), lines: [line] });
}

export const RUNNERS: readonly Host[] = [NEST_SWC, DENO, TSX, TS_NODE, NODE, AVA, MOCHA];

/** The host that runs JavaScript without a compiler. */
export const PLAIN_NODE = NODE;
