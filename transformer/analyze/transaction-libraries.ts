import type * as TS from "typescript";
import { problem, type Problem } from "../text/problems";

/**
 * How code gets its transaction: from the asynchronous context, as an argument of its callback, or from the object that starts it. With
 * `either`, a setting of the library decides: a callback that does not use its argument gets the transaction from the context.
 */
export type Carrier = "context" | "argument" | "receiver" | "either";

/** A function, a method, or a decorator that runs a function in a transaction, and commits after it. */
export interface Starter {
  /** The package that declares it, or the end of the path of its file, without an extension. */
  readonly module: string;
  /** The class or interface that declares it. Without it, any may. */
  readonly owner: string | undefined;
  readonly name: string;
  readonly carrier: Carrier;
}

/** A pair of calls that begin and commit a transaction of the same object. */
export interface Pair {
  readonly begin: Starter;
  readonly commit: string;
  /** The first arguments of the calls, if they are SQL. */
  readonly texts?: { readonly begin: RegExp; readonly commit: RegExp };
}

const FORM = /^(?<module>[^#\s]+)#(?:(?<owner>[\w$]+)\.)?(?<name>[\w$]+)$/;

/** The libraries that every project gets. `LW1509` is documented with their names. */
const KNOWN: Readonly<Record<Carrier, readonly string[]>> = {
  context: [
    "typeorm-transactional#Transactional",
    "typeorm-transactional#runInTransaction",
    "typeorm-transactional#wrapInTransaction",
    "@nestjs-cls/transactional#Transactional",
    "@nestjs-cls/transactional#TransactionHost.withTransaction",
    "@mikro-orm/core#EntityManager.transactional",
    "@mikro-orm/core#Transactional",
    "@mikro-orm/decorators#Transactional",
  ],
  argument: [
    "typeorm#DataSource.transaction",
    "typeorm#EntityManager.transaction",
    "@prisma/client#$transaction",
    ".prisma#$transaction", // The package into which older versions generate the client.
    "drizzle-orm#transaction",
    "kysely#TransactionBuilder.execute",
    "kysely#ControlledTransactionBuilder.execute",
    "knex#transaction",
    "postgres#begin",
  ],
  receiver: ["mongodb#ClientSession.withTransaction"],
  either: [
    "sequelize#Sequelize.transaction",
    "@sequelize/core#SequelizeTypeScript.transaction",
    "@sequelize/core#Sequelize.transaction",
    "mongoose#Connection.transaction",
  ],
};

export const PAIRS: readonly Pair[] = [
  {
    begin: starter("pg#query", "receiver"),
    commit: "query",
    texts: { begin: /^\s*(?:begin|start\s+transaction)\b/i, commit: /^\s*(?:commit|end)\b/i },
  },
  { begin: starter("typeorm#QueryRunner.startTransaction", "receiver"), commit: "commitTransaction" },
  { begin: starter("mongodb#ClientSession.startTransaction", "receiver"), commit: "commitTransaction" },
  { begin: starter("@mikro-orm/core#EntityManager.begin", "receiver"), commit: "commit" },
];

export const STARTERS: readonly Starter[] = Object.entries(KNOWN).flatMap(([carrier, all]) =>
  all.map((one) => starter(one, carrier as Carrier)),
);

/** The method that keeps the key of a lock closed until the transaction ends. In a workspace, our own package may be linked. */
export const GUARDS: readonly Starter[] = ["lockweave#guard", "runtime/lock/held-lock#HeldLock.guard"].map(
  (one) => starter(one, "argument"),
);

function starter(text: string, carrier: Carrier): Starter {
  const { module = "", owner, name = "" } = FORM.exec(text)?.groups ?? {};
  return {
    module: module.replace(/(?<=\/.*)\.[cm]?[jt]sx?$/, "").replace(/^(?:\.\/)+/, ""),
    owner,
    name,
    carrier,
  };
}

/** Reads the plugin's `transactions`: the functions that start transactions in this project, such as `@acme/db#inTransaction`. */
export function readTransactions(option: unknown): {
  readonly starters: readonly Starter[];
  readonly problems: readonly Problem[];
} {
  const all: readonly unknown[] = Array.isArray(option) ? option : [option];
  const isValid = (one: unknown): one is string => typeof one === "string" && FORM.test(one);
  const wrong = option === undefined ? [] : all.filter((one) => !isValid(one) || !Array.isArray(option));
  const problems = wrong.map((one) =>
    problem(
      "badPluginOption",
      { start: 0, end: 0 },
      `Expected the plugin's \`transactions\` to be a list of names such as \`@acme/db#inTransaction\` or \`src/db.ts#Database.transaction\`, got \`${JSON.stringify(one)}\`.`,
    ),
  );
  return { starters: all.filter(isValid).map((one) => starter(one, "either")), problems };
}

/** Returns the names of those modules that are in the program. To resolve calls to the others would take long, and find nothing. */
export function modulesIn(program: TS.Program, starters: readonly Starter[]): ReadonlySet<string> {
  const modules = new Set(starters.map(({ module }) => module));
  const found = new Set(
    program
      .getTypeChecker()
      .getAmbientModules()
      .map(({ name }) => name.slice(1, -1)),
  );
  for (const file of program.getSourceFiles()) {
    const location = locationOf(file);
    for (const module of modules) if (!found.has(module) && isAt(location, module)) found.add(module);
    if (location.isPrisma) found.add("@prisma/client");
  }
  return found;
}

/** The path of a file, which shows the module that it belongs to. */
interface Location {
  /** The path below the last `node_modules`. */
  readonly inside: string | undefined;
  /** The path without an extension. */
  readonly path: string;
  /** Whether Prisma generated the file. */
  readonly isPrisma: boolean;
}

/** An editor analyzes after each keystroke, and most files are the same as before. */
const locations = new WeakMap<TS.SourceFile, Location>();

function locationOf(file: TS.SourceFile): Location {
  const known = locations.get(file);
  if (known !== undefined) return known;
  const { fileName, text } = file;
  const [, inside] = /.*\/node_modules\/(.*)$/.exec(fileName) ?? [];
  const path = fileName.replace(/(?:\.d)?\.[cm]?[jt]sx?$/, "");
  const location = { inside, path, isPrisma: text.includes(OF_PRISMA) };
  locations.set(file, location);
  return location;
}

/** Whether the declaration is the one that the starter names. The name alone proves nothing, because many libraries use it. */
export function isDeclaredAs(ts: typeof TS, declaration: TS.Node, { module, owner, name }: Starter): boolean {
  const named = namedBy(ts, declaration);
  if (named?.name !== name || (owner !== undefined && named.owner !== owner)) return false;
  return isIn(ts, declaration, module) || (module === "@prisma/client" && isOfGeneratedPrisma(declaration));
}

/** Returns the name of a declaration, and that of the type around it. A function type has the name of its variable or property. */
function namedBy(
  ts: typeof TS,
  declaration: TS.Node,
): { readonly name: string; readonly owner: string | undefined } | undefined {
  let node: TS.Node = declaration;
  while (nameIn(node) === undefined && !ts.isSourceFile(node)) node = node.parent;
  const name = nameIn(node);
  const type = ts.findAncestor(node.parent, (one) => ts.isClassLike(one) || ts.isInterfaceDeclaration(one));
  return name === undefined ? undefined : { name, owner: type && nameIn(type) };
}

function nameIn(node: TS.Node): string | undefined {
  return (node as { readonly name?: { readonly text?: string } }).name?.text;
}

function isIn(ts: typeof TS, declaration: TS.Node, module: string): boolean {
  const ambient = ts.findAncestor(
    declaration,
    (node): node is TS.ModuleDeclaration => ts.isModuleDeclaration(node) && ts.isStringLiteral(node.name),
  );
  return ambient?.name.text === module || isAt(locationOf(declaration.getSourceFile()), module);
}

function isAt({ inside, path }: Location, module: string): boolean {
  if (inside === undefined) return path.endsWith(`/${module}`);
  const types = `@types/${module.replace(/^@(.*)\//, "$1__")}`;
  return inside.startsWith(`${module}/`) || inside.startsWith(`${types}/`);
}

/** Whether Prisma generated the declaration into a folder of the project. */
function isOfGeneratedPrisma(declaration: TS.Node): boolean {
  return declaration.getText().includes(OF_PRISMA);
}

/** A type of Prisma's runtime that only its clients name. */
const OF_PRISMA = "ITXClientDenyList";
