/** A module with one tagged function, generated from a seed. The same seed always generates the same module. */
export interface RandomProgram {
  /** JavaScript that imports `world` and exports `subject`. */
  readonly source: string;
  readonly isGenerator: boolean;
  /** The arguments of the call. */
  readonly args: readonly unknown[];
  /** The calls on the generator. */
  readonly steps: readonly Step[];
}

export interface Step {
  readonly call: "next" | "return" | "throw";
  readonly value: number;
}

export function randomProgram(seed: number): RandomProgram {
  const dice = new Dice(seed);
  const isGenerator = dice.chance(0.2);
  const source = new Writer(dice, isGenerator).module();
  return {
    source: layOut(dice, source),
    isGenerator,
    args: dice.of<readonly unknown[]>([
      [1, undefined, { x: 3, y: [4] }, 5, 6],
      [1, 2],
      ["a", undefined, { x: undefined, y: [] }],
      [7, null, { x: 0 }, "rest"],
    ]),
    steps: Array.from({ length: dice.below(9) }, (_, value) => ({
      call: dice.chance(0.75) ? "next" : dice.of(["next", "return", "throw"] as const),
      value,
    })),
  };
}

/** Mulberry32, a small generator that is good enough here. */
class Dice {
  #state: number;

  constructor(seed: number) {
    this.#state = seed;
  }

  fraction(): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  }

  below(limit: number): number {
    return Math.floor(this.fraction() * limit);
  }

  chance(probability: number): boolean {
    return this.fraction() < probability;
  }

  of<T>(all: readonly [T, ...T[]]): T {
    return all[this.below(all.length)] ?? all[0];
  }
}

/** The statements that are allowed at the current position in the program. */
interface Place {
  readonly depth: number;
  /** The names in scope. */
  readonly names: readonly string[];
  /** The names that this scope itself declares. It must not declare them again. */
  readonly declared: Set<string>;
  readonly breakable: boolean;
  readonly continuable: boolean;
  readonly labels: readonly { readonly name: string; readonly isLoop: boolean }[];
  readonly canAwait: boolean;
  readonly canYield: boolean;
  readonly canReturn: boolean;
  readonly isArrow: boolean;
  /** Whether a surrounding `finally` would drop a promise that is returned here, so that nobody would await its work. */
  readonly returnsSettled: boolean;
}

/** Only a few names, so that they shadow each other. */
const NAMES = ["lock", "lockweave", "error", "result"] as const;

/** Generates statements, one on each line. */
class Writer {
  readonly #dice: Dice;
  readonly #isGenerator: boolean;
  /** Used in few programs, but often there, because these programs run longest. */
  readonly #hasResources: boolean;
  #count = 0;

  constructor(dice: Dice, isGenerator: boolean) {
    this.#dice = dice;
    this.#isGenerator = isGenerator;
    this.#hasResources = dice.chance(0.04);
  }

  module(): string[] {
    const dice = this.#dice;
    const isExpression = !this.#isGenerator && dice.chance(0.08);
    const form = isExpression
      ? "arrow"
      : dice.of(["function", "arrow", "expression", "method", "static", "object", "property", "private"]);
    const isArrow = (form === "arrow" || form === "property") && !this.#isGenerator;
    const parameters = dice.of([
      "a",
      "a, b",
      "a, b = world.effect('default b', 2)",
      "a, b, { x, y: [z = 8] = [] } = {}",
      "a, b = a, { x = world.effect('default x', 3) } = {}, ...rest",
      "a, b = world.boom(3)",
      "lock, error, ...lockweave",
    ]);
    const names = [...parameters.matchAll(/\b(a|b|x|z|rest|lock|error|lockweave)\b(?! b'| x'|:)/g)].map(
      ([name]) => name,
    );
    const place: Place = {
      depth: 0,
      names,
      declared: new Set(names),
      breakable: false,
      continuable: false,
      labels: [],
      canAwait: true,
      canYield: this.#isGenerator,
      canReturn: true,
      isArrow,
      returnsSettled: false,
    };
    const key = parameters.startsWith("lock") ? "lock" : "a";
    const tag = `/** @redisLock ${this.#attributes(key)} watchdog=false */`;
    const star = this.#isGenerator ? "*" : "";
    const open = isExpression ? ` => ${this.#arrowValue(place)};` : isArrow ? " => {" : " {";
    const body = isExpression
      ? []
      : [...this.#directive(), ...this.#statements(place, 2 + dice.below(6)), "}"];
    const imports = 'import { world } from "world";';
    switch (form) {
      case "function":
        return [imports, tag, `export async function${star} subject(${parameters})${open}`, ...body];
      case "arrow":
      case "expression": {
        const head = isArrow ? `async (${parameters})` : `async function${star} (${parameters})`;
        return [imports, tag, `export const subject = ${head}${open}`, ...body, ";"];
      }
      case "object": {
        const head = `async ${star}subject(${parameters})`;
        return [
          imports,
          "const object = { tag: 'object',",
          tag,
          head + open,
          ...body,
          "};",
          ...EXPORT("object"),
        ];
      }
      default: {
        const name = form === "private" ? "#subject" : "subject";
        const head = isArrow
          ? `subject = async (${parameters})`
          : form === "property"
            ? `subject = async function${star} (${parameters})`
            : `${form === "static" ? "static " : ""}async ${star}${name}(${parameters})`;
        const end = form === "property" ? [";"] : [];
        const opened = form === "private" ? ["open(...all) { return this.#subject(...all); }"] : [];
        const all = [
          imports,
          "class A { tag = 'A'; static tag = 'static A';",
          tag,
          head + open,
          ...body,
          ...end,
        ];
        const exported = form === "private" ? "open" : "subject";
        return [...all, ...opened, "}", ...EXPORT(form === "static" ? "A" : "new A()", exported)];
      }
    }
  }

  /** Some attributes change the woven code. None may change what the body does. */
  #attributes(key: string): string {
    const dice = this.#dice;
    const byFlag = `businessFlag=fuzz keyName=${key}`;
    if (!this.#isGenerator && dice.chance(0.15)) return `${byFlag} reentrant=true`;
    if (dice.chance(0.6)) return byFlag;
    const forAll = [
      `key="fuzz:\${${key}}"`,
      `${byFlag} each=true`,
      `${byFlag} when="${key} === 1"`,
      `${byFlag} permits=2`,
      `${byFlag} release=background`,
      `${byFlag} fencing=true`,
      `${byFlag} mode=write onLost=warn`,
    ] as const;
    const forCalls = [`${byFlag} mode=read`, `${byFlag} each=true mode=read when="${key} !== 7"`] as const;
    return dice.of(this.#isGenerator ? forAll : [...forAll, ...forCalls]);
  }

  #directive(): string[] {
    return this.#dice.chance(0.05) ? ['"a directive";'] : [];
  }

  #statements(place: Place, count: number): string[] {
    const inside: Place = { ...place, names: [...place.names] };
    const statements: string[] = [];
    for (let index = 0; index < count; index += 1) {
      const { lines, declares } = this.#statement(inside);
      statements.push(...lines);
      if (declares !== undefined) (inside.names as string[]).push(declares);
    }
    return statements;
  }

  #block(place: Place, changes: Partial<Place> = {}): string[] {
    const inside = { ...place, depth: place.depth + 1, declared: new Set<string>(), ...changes };
    return ["{", ...this.#statements(inside, this.#dice.below(4)), "}"];
  }

  #statement(place: Place): { lines: string[]; declares?: string } {
    const dice = this.#dice;
    const isDeep = place.depth >= 4;
    const kind = dice.below(isDeep ? 9 : 24);
    switch (kind) {
      case 0:
      case 1:
        return { lines: [`${this.#effect()};`] };
      case 2:
        return { lines: [`world.effect(${this.#number()}, ${this.#value(place)});`] };
      case 3:
      case 4:
        return this.#declaration(place);
      case 5:
        return { lines: [place.canAwait ? `await world.work(${this.#number()});` : `${this.#effect()};`] };
      case 6:
        return { lines: place.canYield ? [this.#yielding(place)] : [`${this.#effect()};`] };
      case 7:
        return { lines: this.#jump(place) };
      case 8:
        return { lines: dice.chance(0.5) ? [this.#throwing(place)] : [`${this.#effect()};`] };
      case 9:
      case 10:
        return { lines: this.#choice(place) };
      case 11:
      case 12:
      case 13:
        return { lines: this.#loop(place) };
      case 14:
      case 15:
      case 16:
      case 17:
        return { lines: this.#attempt(place) };
      case 18:
        return { lines: this.#switch(place) };
      case 19: {
        const name = `label${this.#number()}`;
        const labels = [...place.labels, { name, isLoop: false }];
        return { lines: [`${name}:`, ...this.#block(place, { labels })] };
      }
      case 20:
        return { lines: this.#closures(place) };
      case 21:
      case 22:
        return { lines: this.#nested(place) };
      default:
        return { lines: this.#block(place) };
    }
  }

  #declaration(place: Place): { lines: string[]; declares?: string } {
    const dice = this.#dice;
    const name = dice.of(NAMES);
    if (place.declared.has(name)) return { lines: [`${this.#effect()};`] };
    place.declared.add(name);
    if (this.#hasResources && dice.chance(0.4))
      return {
        lines: [`${this.#using(place)} ${name} = world.resource(${this.#number()});`],
        declares: name,
      };
    const keyword = dice.chance(0.7) ? "const" : "let";
    const pattern = dice.chance(0.15) ? `{ length: ${name} = ${this.#value(place)} }` : name;
    const given = dice.chance(0.25) ? `world.lazy(${this.#number()})` : this.#settled(place);
    const value = pattern === name ? given : '"text"';
    return { lines: [`${keyword} ${pattern} = ${value};`], declares: name };
  }

  #using({ canAwait }: Place): string {
    return canAwait && this.#dice.chance(0.5) ? "await using" : "using";
  }

  #jump(place: Place): string[] {
    const dice = this.#dice;
    const jumps: string[] = [];
    if (place.canReturn) jumps.push(...Array.from({ length: 3 }, () => this.#returning(place)));
    if (place.breakable) jumps.push("break;");
    if (place.continuable) jumps.push("continue;");
    for (const { name, isLoop } of place.labels)
      jumps.push(`break ${name};`, ...(isLoop ? [`continue ${name};`] : []));
    const [first, ...others] = jumps;
    if (first === undefined) return [`${this.#effect()};`];
    const jump = dice.of([first, ...others]);
    return dice.chance(0.7) ? [`if (${this.#condition(place)}) ${jump}`] : [jump];
  }

  #returning(place: Place): string {
    const dice = this.#dice;
    if (dice.chance(0.1)) return "return;";
    const value = this.#returned(place);
    const isBracketed = /^[[({`'"]/.test(value);
    return isBracketed && dice.chance(0.3) ? `return${value};` : `return ${value};`;
  }

  #yielding(place: Place): string {
    const dice = this.#dice;
    switch (dice.below(4)) {
      case 0:
        return `world.effect(${this.#number()}, yield ${this.#value(place)});`;
      case 1:
        return `yield* [${this.#number()}, ${this.#number()}];`;
      case 2:
        return `yield world.work(${this.#number()});`;
      default:
        return `yield ${this.#value(place)};`;
    }
  }

  #throwing(place: Place): string {
    const errors = [
      "throw undefined;",
      `throw world.errors[${this.#dice.below(4)}];`,
      `world.boom(${this.#dice.below(4)});`,
    ];
    if (place.canAwait) errors.push(`await world.fail(${this.#dice.below(4)});`, "await undefined.x;");
    const [first = "", ...others] = errors;
    const statement = this.#dice.of([first, ...others]);
    return this.#dice.chance(0.6) ? `if (${this.#condition(place)}) ${statement}` : statement;
  }

  #choice(place: Place): string[] {
    const other = this.#dice.chance(0.5) ? ["else", ...this.#block(place)] : [];
    return [`if (${this.#condition(place)})`, ...this.#block(place), ...other];
  }

  #loop(place: Place): string[] {
    const dice = this.#dice;
    const number = this.#number();
    const isLabelled = dice.chance(0.3);
    const labels = isLabelled ? [...place.labels, { name: `loop${number}`, isLoop: true }] : place.labels;
    const head = isLabelled ? [`loop${number}:`] : [];
    const inside = { labels, breakable: true, continuable: true };
    const counter = `i${number}`;
    const body = this.#block(place, { ...inside, names: [...place.names, counter] });
    /** A return while the connection is still lent. */
    const leaving = (): string[] =>
      endedBy(
        body,
        place.canReturn && !place.returnsSettled && dice.chance(0.6)
          ? [`return world.query(${counter});`]
          : [],
      );
    switch (dice.below(place.canAwait ? 11 : 8)) {
      case 0:
        return [...head, `for (let ${counter} = 0; ${counter} < 3; ${counter} += 1)`, ...body];
      case 1:
        return [...head, `for (const ${counter} of [1, 2])`, ...body];
      case 2:
        return [...head, `for (const ${counter} in { p: 1, q: 2 })`, ...body];
      case 3:
        return [`let ${counter} = 0;`, ...head, `while (${counter}++ < 2)`, ...body];
      case 4:
        return [`let ${counter} = 0;`, ...head, "do", ...body, `while (${counter}++ < 2);`];
      case 5:
      case 6: {
        if (!this.#hasResources)
          return [...head, `for (const ${counter} of world.cursor(${number}))`, ...body];
        const resource = `world.resource(${number})`;
        const of = dice.of([`world.resources(${number})`, `[${resource}, ${resource}]`]);
        const each = `${counter} of ${of}`;
        // TypeScript loses the label of such a loop when it compiles `using`.
        const isOne = !isLabelled && dice.chance(0.5);
        const heads = isOne ? `${counter} = ${resource}; world.again(${counter});` : each;
        return [...head, `for (${this.#using(place)} ${heads})`, ...body];
      }
      case 7:
        return [...head, `for (const ${counter} of world.borrow(${number}))`, ...leaving()];
      case 8:
        return [...head, `for await (const ${counter} of world.stream(${number}))`, ...body];
      case 9:
        return [...head, `for await (const ${counter} of world.lease(${number}))`, ...leaving()];
      default:
        return [...head, `for await (const ${counter} of [world.work(${number}), ${number}])`, ...body];
    }
  }

  #attempt(place: Place): string[] {
    const dice = this.#dice;
    const hasCatch = dice.chance(0.7);
    const hasFinally = !hasCatch || dice.chance(0.5);
    // A `finally` that jumps would drop a returned promise, with its error and its work.
    const isAbrupt = hasFinally && dice.chance(0.2);
    const inside = { returnsSettled: place.returnsSettled || isAbrupt };
    const name = `caught${this.#number()}`;
    const caught = { ...inside, names: [...place.names, name] };
    const leaving = dice.chance(0.4) ? this.#jump({ ...place, ...inside }) : [];
    return [
      "try",
      ...endedBy(this.#block(place, inside), dice.chance(0.3) ? [this.#throwing(place)] : []),
      ...(hasCatch
        ? dice.chance(0.7)
          ? [`catch (${name})`, ...endedBy(this.#block(place, caught), leaving)]
          : ["catch", ...this.#block(place, inside)]
        : []),
      ...(hasFinally ? ["finally", ...(isAbrupt ? this.#block(place) : this.#calm(place))] : []),
    ];
  }

  /** A block that does not jump out. */
  #calm({ canAwait }: Place): string[] {
    const work = canAwait && this.#dice.chance(0.4) ? [`await world.work(${this.#number()});`] : [];
    return ["{", `${this.#effect()};`, ...work, "}"];
  }

  #switch(place: Place): string[] {
    const clause = (head: string): string[] => [
      head,
      ...this.#block(place, { breakable: true }),
      ...(this.#dice.chance(0.5) ? ["break;"] : []),
    ];
    const heads = ["case 1:", "case 'a':", "default:", "case undefined:"];
    const chosen = heads.filter(() => this.#dice.chance(0.6));
    return [`switch (${this.#value(place)}) {`, ...chosen.flatMap(clause), "}"];
  }

  #closures(place: Place): string[] {
    const number = this.#number();
    const list = `all${number}`;
    const { canAwait } = place;
    const isAsync = canAwait && this.#dice.chance(0.5);
    return [
      `const ${list} = [];`,
      `for (let c${number} = 0; c${number} < 3; c${number}++) {`,
      `${list}.push(${isAsync ? `async () => world.work(c${number})` : `() => c${number}`});`,
      ...(this.#dice.chance(0.3) ? [`if (c${number} === 1) continue;`] : []),
      `${this.#effect()};`,
      "}",
      `for (const one of ${list}) world.effect(${this.#number()}, ${isAsync ? "await one()" : "one()"});`,
    ];
  }

  /** Inner functions, with their own returns, yields, and jumps. */
  #nested(place: Place): string[] {
    const dice = this.#dice;
    const name = `inner${this.#number()}`;
    const own = { breakable: false, continuable: false, labels: [], canReturn: true, returnsSettled: false };
    const body = (changes: Partial<Place>): string[] =>
      this.#block(place, { ...own, ...changes, names: [...place.names, "p"] });
    const isolated = { canAwait: false, canYield: false };
    const used = (call: string): string => `world.effect(${this.#number()}, ${call});`;
    switch (dice.below(place.canAwait ? 7 : 4)) {
      case 0:
        return [
          `const ${name} = (p) =>`,
          ...body({ ...isolated, returnsSettled: true }),
          ";",
          used(`${name}(1)`),
        ];
      case 1:
        return [
          `function ${name}(p)`,
          ...body({ ...isolated, isArrow: false, returnsSettled: true }),
          used(`${name}.call({ tag: 'own' }, 2)`),
        ];
      case 2:
        return [
          `const ${name} = function* (p)`,
          "{ try { yield p; yield* [1, 2]; return 3; } catch (error) { return 4; } finally { world.effect(0); } };",
          used(`[...${name}(0)].length`),
          ...(place.canReturn && !place.returnsSettled && dice.chance(0.3)
            ? [`if (${this.#condition(place)}) for (const one of ${name}(1)) return world.work(one);`]
            : []),
        ];
      case 3:
        return [
          `class ${name} { #own = 1; get one() { return this.#own; } two() { return this; } static { world.effect("static"); } }`,
          used(`new ${name}().two().one`),
        ];
      case 4:
        return [
          `const ${name} = async (p) =>`,
          ...body({ canYield: false, returnsSettled: true }),
          ";",
          used(`await ${name}(3)`),
        ];
      case 5:
        return [
          `async function ${name}(p)`,
          ...body({ canYield: false, isArrow: false, returnsSettled: true }),
          used(`await ${name}(4)`),
        ];
      default:
        return [
          `async function* ${name}(p) { try { yield world.work(p); return world.work(p + 1); } finally { ${this.#effect()}; } }`,
          `for await (const one of ${name}(5)) world.effect(${this.#number()}, one);`,
        ];
    }
  }

  // ---- expressions --------------------------------------------------------------------------------------

  #effect(): string {
    return `world.effect(${this.#number()})`;
  }

  #condition(place: Place): string {
    return `world.chance(${this.#value(place)})`;
  }

  #value(place: Place): string {
    const dice = this.#dice;
    const values: [string, ...string[]] = [
      String(this.#number()),
      "undefined",
      "'text'",
      "this?.tag",
      this.#effect(),
    ];
    if (!place.isArrow) values.push("arguments.length");
    const [first, ...others] = place.names;
    if (first !== undefined && dice.chance(0.6)) return dice.of([first, ...others]);
    return dice.of(values);
  }

  /** An expression that leaves no promise without an await. */
  #settled(place: Place): string {
    const dice = this.#dice;
    switch (dice.below(10)) {
      case 0:
        return place.canAwait ? `await world.work(${this.#number()})` : "null";
      case 1:
        return `[${this.#value(place)}, ${this.#value(place)}]`;
      case 2:
        return `{ k: ${this.#value(place)} }`;
      case 3:
        return `${this.#value(place)} + 1`;
      case 4:
        return `\`\${typeof ${this.#value(place)}}\``;
      case 5:
        return `${this.#condition(place)} ? ${this.#value(place)} : ${this.#value(place)}`;
      case 6:
        return `(${this.#effect()}, ${this.#value(place)})`;
      case 7:
        return `${this.#condition(place)} && ${this.#value(place)}`;
      case 8:
        return dice.of(["() => world.work(1)", "async () => 1", "function () { return world.work(2); }"]);
      default:
        return this.#value(place);
    }
  }

  #returned(place: Place): string {
    const dice = this.#dice;
    if (dice.chance(0.15)) return place.names.at(-1) ?? "null";
    if (place.returnsSettled || dice.chance(0.3)) return this.#settled(place);
    return this.#promise(place);
  }

  #promise(place: Place): string {
    const number = this.#number();
    const [one, value] = [`world.work(${number})`, this.#value(place)];
    return this.#dice.of([
      one,
      `(${one})`,
      `[world][0].work(${number})`,
      `${this.#condition(place)} ? ${one} : ${value}`,
      `${this.#condition(place)} || ${one}`,
      `undefined ?? ${one}`,
      `${value}, ${one}`,
      `(world.effect(${number}), ${one})`,
      `Promise.all([${one}, world.work(${this.#number()})])`,
      `world.fail(${this.#dice.below(4)})`,
      `Promise.reject(world.errors[${this.#dice.below(4)}])`,
      `{ then(resolve) { resolve(world.effect(${number})); } }`,
      `{ ["then"]: (resolve, reject) => reject(world.errors[1]) }`,
      `new Promise((resolve) => world.work(${number}).then(resolve))`,
      `(async () => { try { return world.work(${number}); } finally { ${this.#effect()}; } })()`,
      `((p) => { return world.work(p); })(${number})`,
      `world.last = ${one}`,
      `world?.["work"]?.(${number})`,
      `world.account(${number}).balance`,
      `{ get then() { world.effect(${number}); return (resolve) => resolve(${number}); } }`,
      `world.object`,
    ]);
  }

  #arrowValue(place: Place): string {
    const value = this.#dice.chance(0.3) ? this.#settled(place) : this.#promise(place);
    return value.startsWith("{") || value.includes(", ") ? `(${value})` : value;
  }

  #number(): number {
    this.#count += 1;
    return this.#count;
  }
}

const EXPORT = (object: string, name = "subject"): string[] => [
  `const owner = ${object};`,
  `export const subject = (...all) => owner.${name}(...all);`,
];

function endedBy(block: readonly string[], end: readonly string[]): string[] {
  return [...block.slice(0, -1), ...end, "}"];
}

/** Formats the lines on one line or many, with random comments. */
function layOut(dice: Dice, lines: readonly string[]): string {
  const [first = "", ...others] = lines;
  if (dice.chance(0.3)) {
    const comment = (): string => (dice.chance(0.1) ? " /* return work(); { */ " : " ");
    return first + others.map((line) => comment() + line).join("");
  }
  const lineBreak = dice.of(["\n", "\n", "\r\n"]);
  const comment = (): string => (dice.chance(0.1) ? ` // return work(); }${lineBreak}` : lineBreak);
  return first + others.map((line) => comment() + line).join("");
}
