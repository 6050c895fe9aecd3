import type * as TS from "typescript";
import type { Calls } from "./calls";
import type { Step } from "./reach";
import { bare, isFunctionWithBody, type Callable } from "./syntax";

/** A call of a function, and the function that contains the call. */
interface Caller {
  readonly by: Callable;
  readonly step: Step;
  /** The functions of the program that get the function as a callback, and that call it. */
  readonly through: readonly Callable[];
}

/** Finds the callers of functions. It reads only files that contain the function's name. */
export class Callers {
  readonly #ts: typeof TS;
  readonly #files: readonly TS.SourceFile[];
  readonly #calls: Calls;
  readonly #isLibrary: boolean;
  readonly #byFile = new Map<TS.SourceFile, ReadonlyMap<Callable, readonly Caller[]>>();

  /** @param files the files whose calls count */
  constructor(ts: typeof TS, program: TS.Program, files: readonly TS.SourceFile[], calls: Calls) {
    this.#ts = ts;
    this.#files = files;
    this.#calls = calls;
    const { declaration, composite } = program.getCompilerOptions();
    this.#isLibrary = declaration === true || composite === true;
  }

  of(fn: Callable): readonly Caller[] {
    const name = this.#nameNode(fn)?.getText();
    const own = fn.getSourceFile(); // Only its own file runs a function without a name.
    return this.#files
      .filter((file) => (name === undefined ? file === own : file.text.includes(name)))
      .flatMap((file) => this.#callersIn(file).get(fn) ?? []);
  }

  /**
   * Whether only code outside the program calls the function, and that code holds no lock of the program. It is a named function that the
   * program mentions nowhere else. If other projects can import it, they may hold the lock.
   */
  isStart(fn: Callable): boolean {
    const ts = this.#ts;
    const own = this.#nameNode(fn);
    if (own === undefined || !ts.isIdentifier(own)) return false;
    if ((this.#isLibrary && this.#isExported(fn)) || this.#isGivenAway(fn)) return false;
    const visit = (node: TS.Node): boolean => {
      const isMention = (ts.isIdentifier(node) || ts.isStringLiteralLike(node)) && node.text === own.text;
      if (isMention && node !== own && !ts.isExportSpecifier(node.parent)) return true;
      return ts.forEachChild(node, (child) => visit(child) || undefined) ?? false;
    };
    return !this.#files.some((file) => file.text.includes(own.text) && visit(file));
  }

  /** Whether the project has a decorator of its own on the function, which may acquire a lock around it. */
  isWrapped(fn: Callable): boolean {
    const ts = this.#ts;
    const decorators = ts.canHaveDecorators(fn) ? (ts.getDecorators(fn) ?? []) : [];
    return decorators.some(({ expression }) =>
      this.#isOfProject(ts.isCallExpression(expression) ? expression.expression : expression),
    );
  }

  #callersIn(file: TS.SourceFile): ReadonlyMap<Callable, readonly Caller[]> {
    const known = this.#byFile.get(file);
    if (known !== undefined) return known;
    const ts = this.#ts;
    const callers = new Map<Callable, Caller[]>();
    this.#byFile.set(file, callers);
    const visit = (node: TS.Node): void => {
      if (isFunctionWithBody(ts, node)) this.#addCalls(node, callers);
      ts.forEachChild(node, visit);
    };
    visit(file);
    return callers;
  }

  #addCalls(by: Callable, callers: Map<Callable, Caller[]>): void {
    for (const { node, runs, isCallback, givenTo } of this.#calls.in(by)) {
      const { functions: through = [], index = 0 } = givenTo ?? {};
      // Otherwise the callback may run later, or under a lock that the function acquires by hand.
      if (!through.every((one) => this.#calls.onlyCalls(one, index))) continue;
      for (const to of runs) {
        const caller = { by, step: { call: node, to, isCallback, isOnly: runs.length === 1 }, through };
        const all = callers.get(to);
        if (all === undefined) callers.set(to, [caller]);
        else all.push(caller);
      }
    }
  }

  /** Returns the name of the function, or of the variable or property whose value it is. */
  #nameNode(fn: Callable): TS.Node | undefined {
    const { parent } = fn;
    const isValue = this.#ts.isVariableDeclaration(parent) || this.#ts.isPropertyDeclaration(parent);
    if (isValue && parent.initializer === fn) return parent.name;
    return this.#ts.isFunctionExpression(fn) ? undefined : fn.name; // Only the expression itself sees its own name.
  }

  /** Whether the function is in an object that a function of the project gets. It may return another one, with a lock around each call. */
  #isGivenAway(fn: Callable): boolean {
    const ts = this.#ts;
    let node: TS.Node = fn;
    while (
      ts.isObjectLiteralElement(node.parent) ||
      ts.isObjectLiteralExpression(node.parent) ||
      ts.isArrayLiteralExpression(node.parent) ||
      ts.isParenthesizedExpression(node.parent)
    ) {
      node = node.parent;
    }
    return ts.isCallExpression(node.parent) && this.#isOfProject(node.parent.expression);
  }

  /** Whether the project may contain the code of a called function. */
  #isOfProject(called: TS.Expression): boolean {
    const declarations = this.#calls.symbolOf(bare(this.#ts, called))?.declarations ?? [];
    return declarations.length === 0 || declarations.some((one) => !one.getSourceFile().isDeclarationFile);
  }

  #isExported(fn: Callable): boolean {
    const ts = this.#ts;
    const exported = (node: TS.Node): boolean =>
      ts.canHaveModifiers(node) &&
      (ts.getModifiers(node) ?? []).some(({ kind }) => kind === ts.SyntaxKind.ExportKeyword);
    for (let node: TS.Node = fn; !ts.isSourceFile(node); node = node.parent) if (exported(node)) return true;
    // It may be exported under another name, or through an object.
    return fn
      .getSourceFile()
      .statements.some((one) => ts.isExportDeclaration(one) || ts.isExportAssignment(one));
  }
}
