import type * as TS from "typescript";

/** Finds the uses of variables. It goes through each function or file once, and not once for each variable. */
export class Names {
  readonly #ts: typeof TS;
  readonly #known = new Map<TS.Node, ReadonlyMap<string, readonly TS.Identifier[]>>();
  readonly #members = new Map<TS.SourceFile, ReadonlyMap<string, readonly TS.MemberName[]>>();

  constructor(ts: typeof TS) {
    this.#ts = ts;
  }

  /** Returns the identifiers with this text inside the function or the file in which the name is declared. */
  besides(name: TS.Identifier): readonly TS.Identifier[] {
    const ts = this.#ts;
    const scope = ts.findAncestor(name, (node) => ts.isFunctionLike(node) || ts.isSourceFile(node));
    return this.#namesIn(scope ?? name.getSourceFile()).get(name.text) ?? [];
  }

  /** Returns the names in the file with the text of a member: the names of variables, of members, and of private members. */
  ofMember(name: TS.MemberName): readonly TS.MemberName[] {
    const file = name.getSourceFile();
    const known = this.#members.get(file) ?? this.#membersIn(file);
    this.#members.set(file, known);
    return known.get(name.text) ?? [];
  }

  #membersIn(file: TS.SourceFile): ReadonlyMap<string, readonly TS.MemberName[]> {
    const names = new Map<string, TS.MemberName[]>();
    const visit = (node: TS.Node): void => {
      if (this.#ts.isMemberName(node)) {
        const same = names.get(node.text);
        if (same === undefined) names.set(node.text, [node]);
        else same.push(node);
      } else this.#ts.forEachChild(node, visit);
    };
    visit(file);
    return names;
  }

  #namesIn(scope: TS.Node): ReadonlyMap<string, readonly TS.Identifier[]> {
    const known = this.#known.get(scope);
    if (known !== undefined) return known;
    const ts = this.#ts;
    const names = new Map<string, TS.Identifier[]>();
    const visit = (node: TS.Node): void => {
      if (ts.isIdentifier(node)) {
        const same = names.get(node.text);
        if (same === undefined) names.set(node.text, [node]);
        else same.push(node);
      } else ts.forEachChild(node, visit);
    };
    visit(scope);
    this.#known.set(scope, names);
    return names;
  }
}
