import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import ts from "typescript";

const RUNTIME = join(__dirname, "../../runtime");

/** Functions that run a callback later, in the async context of their caller or of the event's emitter. */
const BARE: ReadonlySet<string> = new Set([
  "setTimeout",
  "setInterval",
  "setImmediate",
  "queueMicrotask",
  "nextTick",
  "on",
  "once",
  "addListener",
  "prependListener",
  "addEventListener",
  "subscribe",
]);

/** Functions that run a callback later in the root context. */
const ROOTED: ReadonlySet<string> = new Set([
  "rooted",
  "listenInRoot",
  "runInNextTick",
  "runInPromiseJob",
  "after",
  "afterInBackground",
  "timer",
  "timerInBackground",
  "afterIo",
  "onAbort",
]);

/** A place in the runtime that runs a callback later. */
export interface Site {
  /** Relative to `runtime/`. */
  readonly file: string;
  /** The first line of the call, or of the handler. */
  readonly code: string;
  /** Whether the callback runs in the root context. */
  readonly isRooted: boolean;
}

/** Returns all sites in the runtime. */
export function sitesInRuntime(): Site[] {
  return readdirSync(RUNTIME, { recursive: true, encoding: "utf8" })
    .map((file) => file.replaceAll("\\", "/"))
    .filter((file) => file.endsWith(".ts"))
    .toSorted()
    .flatMap((file) => sitesIn(file, readFileSync(join(RUNTIME, file), "utf8")));
}

export function sitesIn(file: string, text: string): Site[] {
  const source = ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true);
  const rootedNames = namesOfRootedIn(source);
  const sites: Site[] = [];
  const isRootedCallback = (node: ts.Node): boolean =>
    ts.isIdentifier(node) ? rootedNames.has(node.text) : isCallOfRooted(node);
  const visit = (node: ts.Node, isInRoot: boolean): void => {
    const name = ts.isCallExpression(node) ? nameOf(node.expression) : undefined;
    if (ts.isCallExpression(node) && name !== undefined) {
      const add = (at: ts.Node, isRooted: boolean): void =>
        void sites.push({ file, code: firstLineOf(at), isRooted: isInRoot || isRooted });
      if (ROOTED.has(name)) add(node, true);
      else if (BARE.has(name) && hasCallback(name, node)) add(node, node.arguments.some(isRootedCallback));
      else if (name === "listen") {
        for (const handler of handlersOf(node)) add(handler, isRootedCallback(valueOf(handler)));
      }
    }
    ts.forEachChild(node, (child) => visit(child, isInRoot || name === "inRoot"));
  };
  visit(source, false);
  return sites;
}

function nameOf(callee: ts.Expression): string | undefined {
  if (ts.isIdentifier(callee)) return callee.text;
  return ts.isPropertyAccessExpression(callee) ? callee.name.text : undefined;
}

function isCallOfRooted(node: ts.Node): boolean {
  return ts.isCallExpression(node) && nameOf(node.expression) === "rooted";
}

/** The names of the variables that hold the result of `rooted()`. */
function namesOfRootedIn(source: ts.SourceFile): ReadonlySet<string> {
  const names = new Set<string>();
  const visit = (node: ts.Node): void => {
    const isRooted =
      ts.isVariableDeclaration(node) && node.initializer !== undefined && isCallOfRooted(node.initializer);
    if (isRooted) names.add(node.name.getText());
    ts.forEachChild(node, visit);
  };
  visit(source);
  return names;
}

/** Redis commands such as `subscriber.subscribe(name)` get no callback. */
function hasCallback(name: string, call: ts.CallExpression): boolean {
  return name !== "subscribe" || call.arguments.length > 1;
}

/** The handlers of the listener that a store gets. An empty one runs nothing. */
function handlersOf(call: ts.CallExpression): ts.ObjectLiteralElementLike[] {
  const [listener] = call.arguments;
  if (listener === undefined || !ts.isObjectLiteralExpression(listener)) return [];
  return listener.properties.filter(
    (handler) => !ts.isMethodDeclaration(handler) || handler.body?.statements.length !== 0,
  );
}

function valueOf(handler: ts.ObjectLiteralElementLike): ts.Node {
  if (ts.isPropertyAssignment(handler)) return handler.initializer;
  return ts.isShorthandPropertyAssignment(handler) ? handler.name : handler;
}

function firstLineOf(node: ts.Node): string {
  return node.getText().split("\n", 1).join();
}
