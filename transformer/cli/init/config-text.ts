import MagicString from "magic-string";
import type * as TS from "typescript";
import type { Parser } from "../../parser/parser";

/** A configuration file in JSON or JavaScript. Changes preserve its comments and layout. */
export class ConfigText {
  readonly isUnderstood: boolean;
  readonly #ts: Parser;
  readonly #file: TS.SourceFile;
  readonly #isJson: boolean;
  /** The line break that the file uses. */
  readonly #newLine: string;
  readonly #changed: MagicString;

  constructor(ts: Parser, fileName: string, text: string) {
    this.#ts = ts;
    this.#isJson = /\.json$|\.swcrc$/.test(fileName);
    this.#newLine = text.includes("\r\n") ? "\r\n" : "\n";
    const parsedAs = this.#isJson ? "config.json" : fileName;
    this.#file = ts.createSourceFile(parsedAs, text, ts.ScriptTarget.Latest);
    const { parseDiagnostics = [] } = this.#file as { parseDiagnostics?: readonly unknown[] };
    this.isUnderstood = parseDiagnostics.length === 0;
    this.#changed = new MagicString(text);
  }

  toString(): string {
    return this.#changed.toString();
  }

  // ---- reading ------------------------------------------------------------------------------------------

  /** Returns the object of a JSON file, or the one that the module exports. */
  root(): TS.ObjectLiteralExpression | undefined {
    const exported = this.#exported();
    return exported && this.#object(exported);
  }

  /** Returns the first argument of a call to one of these functions, if exactly one such call has the property. */
  argumentOf(names: readonly string[], property: string): TS.ObjectLiteralExpression | undefined {
    const ts = this.#ts;
    const found: TS.ObjectLiteralExpression[] = [];
    const visit = (node: TS.Node): void => {
      if (ts.isCallExpression(node)) {
        const { expression: callee } = node;
        const name = ts.isPropertyAccessExpression(callee) ? callee.name : callee;
        const object = node.arguments[0] && this.#object(node.arguments[0]);
        if (ts.isIdentifier(name) && names.includes(name.text) && object && this.value(object, property))
          found.push(object);
      }
      ts.forEachChild(node, visit);
    };
    visit(this.#file);
    return found.length === 1 ? found[0] : undefined;
  }

  value(object: TS.ObjectLiteralExpression, name: string): TS.Expression | undefined {
    const ts = this.#ts;
    const property = object.properties.find(
      (one) => one.name !== undefined && "text" in one.name && one.name.text === name,
    );
    if (property === undefined) return undefined;
    // For a shorthand or a method, returns its name. The name is not a literal, so callers see that the property exists, and do not change it.
    return ts.isPropertyAssignment(property) ? property.initializer : (property.name as TS.Expression);
  }

  objectAt(object: TS.ObjectLiteralExpression, name: string): TS.ObjectLiteralExpression | undefined {
    const value = this.value(object, name);
    return value && this.#ts.isObjectLiteralExpression(value) ? value : undefined;
  }

  arrayAt(object: TS.ObjectLiteralExpression, name: string): TS.ArrayLiteralExpression | undefined {
    const value = this.value(object, name);
    return value && this.#ts.isArrayLiteralExpression(value) ? value : undefined;
  }

  /** Returns the object of a list element: the element itself, or the argument of a function such as `defineProject`. */
  asObject(element: TS.Expression): TS.ObjectLiteralExpression | undefined {
    return this.#object(element);
  }

  /** Whether every property of the object has a readable name. An object with a spread or a computed name may have others. */
  isWhole(object: TS.ObjectLiteralExpression): boolean {
    return object.properties.every(
      ({ name }) => name !== undefined && !this.#ts.isComputedPropertyName(name),
    );
  }

  textOf(node: TS.Node): string {
    return node.getText(this.#file);
  }

  // ---- writing ------------------------------------------------------------------------------------------

  /**
   * Appends properties to an object.
   *
   * @param properties the code of each value, by its name
   */
  addProperties(object: TS.ObjectLiteralExpression, properties: Readonly<Record<string, string>>): void {
    const codes = Object.entries(properties).map(([name, code]) => {
      const isName = !this.#isJson && /^[\w$]+$/.test(name);
      return `${isName ? name : JSON.stringify(name)}: ${code}`;
    });
    this.#append(object, object.properties, codes);
  }

  addElement(array: TS.ArrayLiteralExpression, code: string, place: "first" | "last"): void {
    const [first] = array.elements;
    if (first === undefined || place === "last") {
      this.#append(array, array.elements, [code]);
      return;
    }
    const at = first.getStart(this.#file);
    const between = this.#isFirstOnLine(at) ? `\n${this.#indentAt(at)}` : " ";
    this.#insert(at, `${code},${between}`);
  }

  /**
   * Appends an item to the list that the module exports: an array, or the arguments of a function that takes such a list, such as
   * `defineConfig(...)`.
   *
   * @returns whether there is such a list
   */
  appendToRootList(code: string): boolean {
    const exported = this.#exported();
    const list = exported && this.#list(exported);
    if (list === undefined) return false;
    if (this.#ts.isArrayLiteralExpression(list)) this.addElement(list, code, "last");
    else this.#append(list, list.arguments, [code]);
    return true;
  }

  replace(node: TS.Node, code: string): void {
    this.#changed.update(node.getStart(this.#file), node.end, this.#lines(code));
  }

  /** Adds an import of a plugin after the existing imports. */
  addImport(name: string, from: string, how: "import" | "require"): void {
    const ts = this.#ts;
    const { text, statements } = this.#file;
    const imports = statements.filter((one) => ts.isImportDeclaration(one));
    const last = imports.at(-1);
    const quote = last?.moduleSpecifier.getText(this.#file)[0] ?? (/"/.test(text) ? '"' : "'");
    const end = last === undefined || text[last.end - 1] === ";" ? ";" : "";
    const source = `${quote}${from}${quote}`;
    const line =
      how === "import" ? `import ${name} from ${source}${end}` : `const ${name} = require(${source})${end}`;
    if (last !== undefined) this.#insert(last.end, `\n${line}`);
    else this.#insert(this.#startOfCode(), `${line}\n\n`);
  }

  // ---- helpers ------------------------------------------------------------------------------------------

  #insert(at: number, text: string): void {
    this.#changed.appendLeft(at, this.#lines(text));
  }

  #lines(text: string): string {
    return text.replaceAll("\n", this.#newLine);
  }

  /** Returns the position after a shebang and after leading line comments, which describe the whole file. */
  #startOfCode(): number {
    const { text, statements } = this.#file;
    const [first] = statements;
    if (first === undefined) return text.length;
    const comments = this.#ts.getLeadingCommentRanges(text, first.getFullStart()) ?? [];
    const own = comments.find(
      ({ pos, end }) => text.startsWith("/*", pos) && end <= first.getStart(this.#file),
    );
    return own?.pos ?? first.getStart(this.#file);
  }

  #append(container: TS.Node, items: TS.NodeArray<TS.Node>, codes: readonly string[]): void {
    const last = items.at(-1);
    if (last === undefined) {
      this.#fill(container, codes);
      return;
    }
    const start = last.getStart(this.#file);
    const between = this.#isFirstOnLine(start) ? `\n${this.#indentAt(start)}` : " ";
    const added = codes.join(`,${between}`);
    if (items.hasTrailingComma) {
      this.#insert(this.#endOfComments(items.end), `${between}${added},`);
    } else if (this.#endOfComments(last.end) === last.end) {
      this.#insert(last.end, `,${between}${added}`);
    } else {
      this.#insert(last.end, ",");
      this.#insert(this.#endOfComments(last.end), `${between}${added}`);
    }
  }

  /** Fills an empty object or list. It may contain comments. */
  #fill(container: TS.Node, codes: readonly string[]): void {
    const open = container.getStart(this.#file) + 1;
    const close = container.end - 1;
    const isBlank = this.#file.text.slice(open, close).trim() === "";
    if (!this.#ts.isObjectLiteralExpression(container)) {
      this.#insert(open, codes.join(", "));
      return;
    }
    const indent = this.#indentAt(open);
    const inner = codes.map((code) => `\n${indent}${this.#indentUnit()}${code}`).join(",");
    if (isBlank && open < close) this.#changed.remove(open, close);
    this.#insert(open, isBlank ? `${inner}\n${indent}` : inner);
  }

  /** Returns the end of the comments that follow an item on its line. They describe that item. */
  #endOfComments(end: number): number {
    return this.#ts.getTrailingCommentRanges(this.#file.text, end)?.at(-1)?.end ?? end;
  }

  #isFirstOnLine(at: number): boolean {
    return this.#lineBefore(at).trim() === "";
  }

  #indentAt(at: number): string {
    return /^[ \t]*/.exec(this.#lineBefore(at))?.[0] ?? "";
  }

  #lineBefore(at: number): string {
    const { text } = this.#file;
    return text.slice(text.lastIndexOf("\n", at - 1) + 1, at);
  }

  #indentUnit(): string {
    return /^(?:\t| {2,})(?=\S)/m.exec(this.#file.text)?.[0] ?? "  ";
  }

  /** Resolves the expression to an object literal, if its text shows which one it is. */
  #object(expression: TS.Expression): TS.ObjectLiteralExpression | undefined {
    const ts = this.#ts;
    if (ts.isObjectLiteralExpression(expression)) return expression;
    if (ts.isParenthesizedExpression(expression)) return this.#object(expression.expression);
    if (ts.isSatisfiesExpression(expression) || ts.isAsExpression(expression))
      return this.#object(expression.expression);
    if (ts.isCallExpression(expression)) {
      const [argument, another] = expression.arguments;
      const isDefinition = /^define\w*$/.test(expression.expression.getText(this.#file));
      return isDefinition && argument && another === undefined ? this.#object(argument) : undefined;
    }
    if (ts.isArrowFunction(expression)) return this.#returned(expression.body);
    if (ts.isIdentifier(expression)) {
      const value = this.#declared(expression.text);
      return value && this.#object(value);
    }
    return undefined;
  }

  #returned(body: TS.ConciseBody): TS.ObjectLiteralExpression | undefined {
    if (!this.#ts.isBlock(body)) return this.#object(body);
    const [only, another] = body.statements.filter((one) => !this.#ts.isVariableStatement(one));
    const isReturn = only !== undefined && another === undefined && this.#ts.isReturnStatement(only);
    return isReturn && only.expression ? this.#object(only.expression) : undefined;
  }

  /** Returns the value of a variable of the module. */
  #declared(name: string): TS.Expression | undefined {
    const declaration = this.#file.statements
      .filter((one) => this.#ts.isVariableStatement(one))
      .flatMap(({ declarationList }) => declarationList.declarations.slice())
      .find((one) => this.#ts.isIdentifier(one.name) && one.name.text === name);
    return declaration?.initializer;
  }

  /** Returns the value of a JSON file, or the one that the module exports. */
  #exported(): TS.Expression | undefined {
    const ts = this.#ts;
    for (const statement of this.#file.statements) {
      if (ts.isExportAssignment(statement)) return statement.expression;
      if (!ts.isExpressionStatement(statement)) continue;
      const { expression } = statement;
      if (this.#isJson) return expression;
      if (ts.isBinaryExpression(expression) && expression.left.getText(this.#file) === "module.exports")
        return expression.right;
    }
    return undefined;
  }

  /** Resolves the expression to an array, or to a call whose arguments are the items of the list. */
  #list(expression: TS.Expression): TS.ArrayLiteralExpression | TS.CallExpression | undefined {
    const ts = this.#ts;
    if (ts.isArrayLiteralExpression(expression)) return expression;
    if (
      ts.isParenthesizedExpression(expression) ||
      ts.isSatisfiesExpression(expression) ||
      ts.isAsExpression(expression)
    )
      return this.#list(expression.expression);
    if (ts.isIdentifier(expression)) {
      const value = this.#declared(expression.text);
      return value && this.#list(value);
    }
    if (!ts.isCallExpression(expression)) return undefined;
    const isDefinition = /^(?:define\w*|tseslint\.config)$/.test(expression.expression.getText(this.#file));
    const [argument, another] = expression.arguments;
    if (!isDefinition || argument === undefined) return undefined;
    return another === undefined && ts.isArrayLiteralExpression(argument) ? argument : expression;
  }
}
