import type * as TS from "typescript";
import { CalledNames } from "./called-names";
import type { Calls } from "./calls";
import { HandleFlow, type Handles } from "./handles";
import { bare, functionIn, isFunctionWithBody, type Callable } from "./syntax";
import {
  isDeclaredAs,
  modulesIn,
  PAIRS,
  STARTERS,
  type Carrier,
  type Pair,
  type Starter,
} from "./transaction-libraries";

/** Code that runs in a transaction, which commits after it. */
export interface Transaction {
  /** The call or the decorator that starts it. */
  readonly at: TS.CallExpression | TS.Decorator;
  /** The function that runs in it. */
  readonly fn: Callable;
  /** The part of the function that runs in it, if it begins and commits the transaction itself. */
  readonly part: Part | undefined;
  /** What the program passes on of the transaction, or `undefined` if all code gets it from the asynchronous context. */
  readonly handles: Handles | undefined;
}

interface Part {
  readonly block: TS.Node;
  readonly start: number;
  readonly end: number;
  /** The blocks that end with a rollback, and where it is. */
  readonly rollbacks: readonly { readonly block: TS.Node; readonly at: number }[];
}

/** A parameter of a function of the program that runs in a transaction, as in `inTransaction(work)`. */
interface Wrapper {
  readonly index: number;
  /** The arguments that get the handle, or `undefined` if the function gets it from the asynchronous context. */
  readonly handles: readonly number[] | undefined;
}

/** Finds the transactions of a program. */
export class Transactions {
  readonly all: Transaction[] = [];
  readonly flow: HandleFlow;
  readonly #ts: typeof TS;
  readonly #checker: TS.TypeChecker;
  readonly #calls: Calls;
  readonly #names: CalledNames;
  readonly #starters: readonly Starter[];
  /** The files that call `commit()`. */
  readonly #committing: ReadonlySet<TS.SourceFile>;
  /** Those that may be decorators. */
  readonly #decorating: readonly Starter[];
  readonly #otherDecorators = new Map<TS.Symbol, boolean>();
  readonly #wrappers = new Map<Callable, Wrapper[]>();
  readonly #callbacks = new Map<TS.Node, Callable[]>();
  readonly #apart = new Map<Callable, boolean>();
  readonly #decorators = new Map<TS.Node, { readonly propagation: string | undefined }>();
  readonly #seen = new Map<TS.Node, Set<Wrapper | Starter>>();

  /** @param starters the functions that start transactions in this project, besides those of the known libraries */
  constructor(
    ts: typeof TS,
    program: TS.Program,
    files: readonly TS.SourceFile[],
    calls: Calls,
    starters: readonly Starter[],
  ) {
    this.#ts = ts;
    this.#checker = program.getTypeChecker();
    this.#calls = calls;
    const all = [...STARTERS, ...starters];
    const modules = modulesIn(program, [...all, ...PAIRS.map(({ begin }) => begin)]);
    this.#starters = all.filter(({ module }) => modules.has(module));
    const pairs = PAIRS.filter(({ begin }) => modules.has(begin.module));
    this.#decorating = this.#starters.filter(
      ({ owner, carrier }) => owner === undefined && (carrier === "context" || carrier === "either"),
    );
    this.flow = new HandleFlow(ts, program, calls);
    this.#names = new CalledNames(ts, this.#starters.length + pairs.length > 0 ? files : []);
    this.#committing = new Set(this.#names.calls("commit").map((call) => call.getSourceFile()));
    if (this.#decorating.length > 0)
      for (const decorator of this.#names.decorators()) this.#decorated(decorator);
    for (const one of this.#starters)
      for (const call of this.#names.calls(one.name)) this.#started(call, one);
    for (const pair of pairs) for (const call of this.#names.calls(pair.begin.name)) this.#begun(call, pair);
  }

  /** Returns the callbacks that a call runs in a transaction. */
  callbacksOf(call: TS.Node): readonly Callable[] {
    return this.#callbacks.get(call) ?? [];
  }

  /** Whether the function has a transaction of its own, or none, in whatever transaction its callers are. */
  isApart(fn: Callable): boolean {
    const known = this.#apart.get(fn);
    if (known !== undefined) return known;
    const decorators = this.#ts.canHaveDecorators(fn) ? (this.#ts.getDecorators(fn) ?? []) : [];
    const isApart = decorators.some((one) => APART.has(this.#propagationAt(one.expression) ?? ""));
    this.#apart.set(fn, isApart);
    return isApart;
  }

  #decorated(at: TS.Decorator): void {
    const fn = at.parent;
    if (isFunctionWithBody(this.#ts, fn) && STARTING.has(this.#propagationAt(at.expression) ?? ""))
      this.#add({ at, fn, part: undefined, handles: undefined });
  }

  /** Returns the propagation that a decorator declares, or `undefined` if it is not one that starts transactions. */
  #propagationAt(decorator: TS.Expression): string | undefined {
    const ts = this.#ts;
    const called = bare(ts, decorator);
    const isCall = ts.isCallExpression(called);
    if (this.#isOther(isCall ? called.expression : called)) return undefined;
    const declarations = isCall
      ? [this.#checker.getResolvedSignature(called)?.declaration]
      : this.#calls.symbolOf(called)?.declarations;
    for (const one of declarations ?? []) {
      if (one === undefined) continue;
      if (this.#decorating.some((starter) => isDeclaredAs(ts, one, starter)))
        return this.#propagationAmong(isCall ? called.arguments : []);
      const inner = this.#propagationInside(one);
      if (inner !== undefined) return inner;
    }
    return undefined;
  }

  /** Whether it is a decorator of a library that starts no transactions. This is much faster than to resolve each call. */
  #isOther(decorator: TS.Expression): boolean {
    const symbol = this.#calls.symbolOf(bare(this.#ts, decorator));
    if (symbol === undefined) return false;
    const known = this.#otherDecorators.get(symbol);
    if (known !== undefined) return known;
    const { declarations = [] } = symbol;
    const isOther =
      declarations.length > 0 &&
      declarations.every(
        (one) =>
          one.getSourceFile().isDeclarationFile &&
          !this.#decorating.some((starter) => isDeclaredAs(this.#ts, one, starter)),
      );
    this.#otherDecorators.set(symbol, isOther);
    return isOther;
  }

  /** Looks into a decorator of the project, as in `const Tx = () => applyDecorators(Transactional())`. */
  #propagationInside(declaration: TS.Declaration | TS.JSDocSignature): string | undefined {
    const ts = this.#ts;
    const known = this.#decorators.get(declaration);
    if (known !== undefined || declaration.getSourceFile().isDeclarationFile) return known?.propagation;
    this.#decorators.set(declaration, { propagation: undefined }); // It may call itself.
    const visit = (node: TS.Node): string | undefined =>
      (ts.isCallExpression(node) && this.#calls.isFunction(node) ? this.#propagationAt(node) : undefined) ??
      ts.forEachChild(node, visit);
    const { body, initializer } = declaration as { readonly body?: TS.Node; readonly initializer?: TS.Node };
    const made = body ?? initializer;
    const propagation = made && visit(made);
    this.#decorators.set(declaration, { propagation });
    return propagation;
  }

  #propagationAmong(given: readonly TS.Expression[]): string {
    return given.flatMap((one) => this.#propagationIn(one) ?? [])[0] ?? "REQUIRED";
  }

  /** Returns `REQUIRES_NEW` for `Propagation.REQUIRES_NEW` and `{ propagation: Propagation.REQUIRES_NEW }`, or `?` for an unknown value. */
  #propagationIn(expression: TS.Expression): string | undefined {
    const ts = this.#ts;
    const value = bare(ts, expression);
    if (isFunctionWithBody(ts, value)) return undefined;
    const type = this.#checker.getTypeAtLocation(value);
    const given = type.getProperty("propagation");
    if (given !== undefined) {
      const word = this.#wordOf(this.#checker.getTypeOfSymbolAtLocation(given, value));
      return word ?? this.#writtenPropagation(value) ?? "?";
    }
    const isOfEnum = (type.flags & ts.TypeFlags.EnumLike) !== 0 && /propagation/i.test(enumName(type));
    return isOfEnum ? (this.#wordOf(type) ?? "?") : undefined;
  }

  /** TypeScript widens the value of a property. What is written there tells more. */
  #writtenPropagation(value: TS.Expression): string | undefined {
    if (!this.#ts.isObjectLiteralExpression(value)) return undefined;
    for (const one of value.properties) {
      if (!this.#ts.isPropertyAssignment(one) || one.name.getText() !== "propagation") continue;
      return this.#wordOf(this.#checker.getTypeAtLocation(one.initializer));
    }
    return undefined;
  }

  #wordOf(type: TS.Type): string | undefined {
    return type.isStringLiteral() ? type.value.toUpperCase().replaceAll("-", "_") : undefined;
  }

  #started(call: TS.CallExpression, starter: Starter): void {
    const ts = this.#ts;
    // Each query of Kysely ends with `execute()`, whose types take long to resolve.
    if (call.arguments.length === 0 && !this.#committing.has(call.getSourceFile())) return;
    const declaration = this.#checker.getResolvedSignature(call)?.declaration;
    if (declaration === undefined || !isDeclaredAs(ts, declaration, starter)) return;
    if (!this.#isNew(call, starter)) return;
    const callbacks = call.arguments.filter((one) => this.#calls.isFunction(one));
    if (callbacks.length === 0) this.#returned(call, starter);
    const propagation = this.#propagationAmong(call.arguments.filter((one) => !callbacks.includes(one)));
    if (!STARTING.has(propagation)) return;
    for (const callback of callbacks) {
      for (const fn of this.#calls.functionsOf(callback)) {
        if (APART.has(propagation)) this.#apart.set(fn, true);
        this.#addCallback(call, fn, this.#handlesOf(call, fn, starter.carrier));
      }
      const own = this.#parameterOf(callback);
      if (own === undefined) continue;
      const isContext =
        starter.carrier === "context" || (starter.carrier === "either" && this.#takesNothing(callback));
      this.#addWrapper(own, isContext ? undefined : [0]);
    }
  }

  #handlesOf(call: TS.CallExpression, fn: Callable, carrier: Carrier): Handles | undefined {
    const ts = this.#ts;
    if (carrier === "context") return undefined;
    const [parameter] = fn.parameters;
    const symbols = new Set(parameter === undefined ? [] : this.flow.declaredBy(parameter.name));
    const called = bare(ts, call.expression);
    if (carrier === "receiver" && ts.isPropertyAccessExpression(called)) {
      const receiver = this.#calls.symbolOf(bare(ts, called.expression));
      if (receiver !== undefined) symbols.add(receiver);
    }
    const handles = { symbols, isThis: false };
    return carrier === "either" && !this.flow.isUsedIn(fn.body, handles) ? undefined : handles;
  }

  #takesNothing(callback: TS.Expression): boolean {
    const signatures = this.#checker.getTypeAtLocation(callback).getCallSignatures();
    return signatures.every(({ parameters }) => parameters.length === 0);
  }

  /** Adds the rest of a block after `const trx = await knex.transaction();`, up to `trx.commit()`. */
  #returned(call: TS.CallExpression, { carrier }: Starter): void {
    const ts = this.#ts;
    if (carrier === "context") return;
    let value: TS.Node = call;
    while (ts.isAwaitExpression(value.parent) || ts.isParenthesizedExpression(value.parent))
      value = value.parent;
    const { parent } = value;
    const target =
      ts.isVariableDeclaration(parent) && ts.isIdentifier(parent.name)
        ? parent.name
        : ts.isBinaryExpression(parent) && parent.right === value
          ? bare(ts, parent.left)
          : undefined;
    const symbol = target && this.#calls.symbolOf(target);
    if (symbol !== undefined) this.#addPart(call, symbol, "commit");
  }

  /** Adds the rest of a block after `await client.query("BEGIN");`, up to the commit. */
  #begun(call: TS.CallExpression, { begin, commit, texts }: Pair): void {
    const ts = this.#ts;
    const called = bare(ts, call.expression);
    if (!ts.isPropertyAccessExpression(called)) return;
    if (texts !== undefined && !texts.begin.test(textOf(ts, call))) return;
    const declaration = this.#checker.getResolvedSignature(call)?.declaration;
    if (declaration === undefined || !isDeclaredAs(ts, declaration, begin)) return;
    const symbol = this.#calls.symbolOf(bare(ts, called.expression));
    if (symbol !== undefined) this.#addPart(call, symbol, commit, texts?.commit);
  }

  #addPart(call: TS.CallExpression, handle: TS.Symbol, commit: string, text = /(?:)/): void {
    const ts = this.#ts;
    const fn = ts.findAncestor(call, (node) => ts.isFunctionLike(node));
    const block = ts.findAncestor(call, (node) => ts.isBlock(node));
    if (fn === undefined || block === undefined || !isFunctionWithBody(ts, fn)) return;
    const rollbacks: Part["rollbacks"][number][] = [];
    for (const node of this.#calls.nodesIn(fn)) {
      if (!ts.isCallExpression(node) || node.pos <= call.end) continue;
      const called = bare(ts, node.expression);
      if (!ts.isPropertyAccessExpression(called)) continue;
      if (this.#calls.symbolOf(bare(ts, called.expression)) !== handle) continue;
      if (/rollback|abort/i.test(called.name.text + textOf(ts, node))) {
        const ended = ts.findAncestor(node, (one) => ts.isBlock(one));
        if (ended !== undefined) rollbacks.push({ block: ended, at: node.end });
      }
      if (called.name.text !== commit || !text.test(textOf(ts, node))) continue;
      const part = { block, start: call.end, end: node.pos, rollbacks };
      this.#add({ at: call, fn, part, handles: { symbols: new Set([handle]), isThis: false } });
      return;
    }
  }

  #addCallback(call: TS.CallExpression, fn: Callable, handles: Handles | undefined): void {
    const all = this.#callbacks.get(call) ?? [];
    this.#callbacks.set(call, [...all, fn]);
    this.#add({ at: call, fn, part: undefined, handles });
  }

  #add(transaction: Transaction): void {
    this.all.push(transaction);
    const { fn, handles } = transaction;
    const known = handles && this.flow.within(fn, handles);
    for (const call of this.#callsWithin(fn)) {
      if (isInPart(this.#ts, transaction, call)) this.#findWrapper(call, known);
    }
  }

  /** Returns the calls in a function, and in the functions inside it that may run before it ends. */
  *#callsWithin(fn: Callable): Iterable<TS.CallExpression> {
    const ts = this.#ts;
    const pending: TS.Node[] = [fn.body];
    for (let node = pending.pop(); node !== undefined; node = pending.pop()) {
      if (ts.isCallExpression(node)) yield node;
      ts.forEachChild(node, (child) => void (this.#runsLater(child) || pending.push(child)));
    }
  }

  /** Whether it is a callback for which nobody waits, as in `runOnTransactionCommit(() => ...)` and `hooks.push(() => ...)`. */
  #runsLater(node: TS.Node): boolean {
    const ts = this.#ts;
    const call = node.parent;
    if (!isFunctionWithBody(ts, node) || !ts.isCallExpression(call)) return false;
    if (!ts.isExpression(node) || !call.arguments.includes(node)) return false;
    const { Void, NumberLike } = ts.TypeFlags;
    const { flags } = this.#checker.getTypeAtLocation(call);
    return (flags & (Void | NumberLike)) !== 0 || this.#calls.dropsResult(node);
  }

  /** Finds `work(tx)`, `storage.run(tx, work)`, and `storage.run(tx, () => work())`, where `work` is a parameter of a function around the transaction. */
  #findWrapper(call: TS.CallExpression, known: Handles | undefined): void {
    const called = this.#parameterOf(call.expression);
    const carrying = call.arguments.flatMap((one, index) =>
      known !== undefined && this.flow.carries(one, known) ? [index] : [],
    );
    if (called !== undefined && (known === undefined || carrying.length > 0))
      this.#addWrapper(called, known && carrying);
    if (known !== undefined && carrying.length === 0) return;
    if (!call.arguments.some((one) => this.#calls.isFunction(one)) || !this.#isStorage(call)) return;
    for (const argument of call.arguments) {
      const fn = functionIn(this.#ts, argument);
      const run = fn === undefined ? [argument] : [...this.#callsWithin(fn)].map((one) => one.expression);
      for (const one of run) {
        const passed = this.#parameterOf(one);
        if (passed !== undefined) this.#addWrapper(passed, undefined);
      }
    }
  }

  /** Whether the call is to `AsyncLocalStorage.run` of Node. */
  #isStorage(call: TS.CallExpression): boolean {
    const declaration = this.#calls.symbolOf(bare(this.#ts, call.expression))?.valueDeclaration;
    const owner = declaration?.parent as { readonly name?: { readonly text?: string } } | undefined;
    return owner?.name?.text === "AsyncLocalStorage";
  }

  /** Returns the parameter that the expression names, if it is a function and its own function has a body. */
  #parameterOf(expression: TS.Expression): { readonly fn: Callable; readonly index: number } | undefined {
    const ts = this.#ts;
    const name = bare(ts, expression);
    const parameter = ts.isIdentifier(name) ? this.#calls.variableOf(name) : undefined;
    if (parameter === undefined || !ts.isParameter(parameter)) return undefined;
    const fn = parameter.parent;
    if (!isFunctionWithBody(ts, fn) || !this.#calls.isFunction(name)) return undefined;
    return { fn, index: fn.parameters.indexOf(parameter) };
  }

  #addWrapper(
    { fn, index }: { readonly fn: Callable; readonly index: number },
    handles: Wrapper["handles"],
  ): void {
    const known = this.#wrappers.get(fn) ?? [];
    if (known.some((one) => one.index === index)) return;
    const wrapper = { index, handles };
    this.#wrappers.set(fn, [...known, wrapper]);
    const name = nameOfCallable(this.#ts, fn);
    for (const call of name === undefined ? [] : this.#names.calls(name)) this.#wrapped(call, fn, wrapper);
  }

  /** Adds the callback of `inTransaction(async (tx) => ...)`. */
  #wrapped(call: TS.CallExpression, wrapper: Callable, found: Wrapper): void {
    const ts = this.#ts;
    const callback = call.arguments[found.index];
    if (callback === undefined || !this.#calls.calleesOf(call).includes(wrapper)) return;
    if (!this.#isNew(call, found)) return;
    for (const fn of this.#calls.functionsOf(callback)) {
      const given = (found.handles ?? []).flatMap((index) => fn.parameters[index]?.name ?? []);
      const symbols = new Set(given.flatMap((one) => this.flow.declaredBy(one)));
      this.#addCallback(call, fn, found.handles && { symbols, isThis: false });
    }
    const own = functionIn(ts, callback) === undefined ? this.#parameterOf(callback) : undefined;
    if (own !== undefined) this.#addWrapper(own, found.handles);
  }

  #isNew(call: TS.Node, cause: Wrapper | Starter): boolean {
    const causes = this.#seen.get(call) ?? new Set();
    this.#seen.set(call, causes);
    return causes.size !== causes.add(cause).size;
  }
}

/** The values of `propagation` with which something commits after the function. */
const STARTING: ReadonlySet<string> = new Set(["MANDATORY", "NESTED", "REQUIRED", "REQUIRES_NEW"]);
const APART: ReadonlySet<string> = new Set(["NEVER", "NOT_SUPPORTED", "REQUIRES_NEW"]);

/** Whether the node is in the part of the function that runs in the transaction. */
export function isInPart(ts: typeof TS, { part }: Transaction, node: TS.Node): boolean {
  if (part === undefined) return true;
  const { block, start, end, rollbacks } = part;
  const isInside = (outer: TS.Node): boolean => ts.findAncestor(node, (one) => one === outer) !== undefined;
  const isAfterRollback = rollbacks.some((one) => node.pos >= one.at && isInside(one.block));
  return node.pos >= start && node.end <= end && isInside(block) && !isAfterRollback;
}

function textOf(ts: typeof TS, call: TS.CallExpression): string {
  const [first] = call.arguments;
  return first !== undefined && ts.isStringLiteralLike(first) ? first.text : "";
}

function enumName({ symbol }: TS.Type): string {
  const { parent } = symbol as TS.Symbol & { readonly parent?: TS.Symbol };
  return `${parent?.name ?? ""} ${symbol.name}`.trim();
}

function nameOfCallable(ts: typeof TS, fn: Callable): string | undefined {
  const named = [fn, fn.parent].find((one) => (one as { readonly name?: TS.Node }).name !== undefined);
  const { name } = (named ?? {}) as { readonly name?: TS.Node };
  return name !== undefined && (ts.isMemberName(name) || ts.isStringLiteralLike(name))
    ? name.text
    : undefined;
}
