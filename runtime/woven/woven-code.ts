/** The steps that the transformer writes around a body. */
const STEPS = [/\.open\(\s*\{\s*site:/, /\.acquire\(/, /\.retryCheck\(/, /\.release\(/];

/** Whether the code of a function has a lock around it, its own or that of a function inside it. */
export function hasLock(code: string): boolean {
  return STEPS.every((step) => step.test(code));
}

/**
 * Whether the code of a function acquires a lock in its own body, or checks the lock that it needs. Functions inside it, comments, and strings
 * do not count.
 */
export function hasOwnLock(code: string): boolean {
  return (hasLock(code) || CHECK.test(code)) && beginsInBody(code);
}

/** The step that the transformer writes for `@needsLock`. */
const CHECK = /\.needs\(\s*\{\s*site:/;

interface Bracket {
  /** The bracket, such as `{`. For a call of a compiler's helper: what the helper does with its function, `runs` or `generates`. */
  readonly kind: string;
  /** Whether a function begins in it. */
  holdsFunction: boolean;
}

/** Whether an `open({ site:` or a `needs({ site:` is in the function's own body. Follows the brackets up to each of them. */
function beginsInBody(code: string): boolean {
  const unclosed: Bracket[] = [];
  /** The number of functions outside all brackets: the function itself, and those that it returns, as in `() => async () => { ... }`. */
  let functions = 0;
  let at = 0;
  let last = "";
  let lastName = "";
  const take = (pattern: RegExp): string | undefined => {
    pattern.lastIndex = at;
    const [token] = pattern.exec(code) ?? [];
    if (token !== undefined) at = pattern.lastIndex;
    return token;
  };
  const begin = (kind: string): void => void unclosed.push({ kind, holdsFunction: false });
  while (at < code.length) {
    const around = unclosed.at(-1);
    if (around?.kind === "`" && take(TEMPLATE_TEXT) !== undefined) continue;
    if (take(BLANK) !== undefined) continue;
    if (last === "." && take(FIRST_STEP) !== undefined) {
      if (functions <= 1 && OWN_BODY.test(unclosed.map(({ kind }) => kind).join(" "))) return true;
      begin("(");
      begin("{");
    }
    const token = (endsValue(last) ? undefined : take(REGULAR_EXPRESSION)) ?? take(TOKEN) ?? "";
    if (token === "=>" || token === "function") {
      if (around === undefined) functions += 1;
      else around.holdsFunction = true;
    } else if (token === "(") {
      const helper = HELPERS.get(last === ")" ? lastName : last);
      const isInside = helper === "runs" && unclosed[0]?.holdsFunction === true;
      begin(isInside ? "(" : (helper ?? "("));
    } else if (/^(?:[)\]}]|`)$/.test(token) && (token !== "`" || around?.kind === "`")) unclosed.pop();
    else if (/^(?:[[{`]|\$\{)$/.test(token)) begin(token);
    if (/^[\w$]/.test(token)) lastName = token;
    last = token;
  }
  return false;
}

/**
 * The brackets around the first statement of a function's body. Compilers for older engines wrap the body into calls of helpers, and
 * tools that measure coverage add parentheses.
 */
const OWN_BODY = /^(?:(?:\{ (?:\( )*)?runs )?\{(?: \()*(?: generates \{ \{(?: \()*)?$/;

/** The helpers of TypeScript, esbuild, SWC, and Babel that get the body of an async function. */
const HELPERS: ReadonlyMap<string, string> = new Map([
  ["__awaiter", "runs"],
  ["__async", "runs"],
  ["__asyncGenerator", "runs"],
  ["_async_to_generator", "runs"],
  ["_asyncToGenerator", "runs"],
  ["_wrap_async_generator", "runs"],
  ["_wrapAsyncGenerator", "runs"],
  ["__generator", "generates"],
  ["_ts_generator", "generates"],
]);

const FIRST_STEP = /(?:open|needs)\(\s*\{\s*site:/y;
const BLANK = /\s+|\/\/.*|\/\*[^]*?\*\//y;
const TEMPLATE_TEXT = /(?:\\[^]|\$(?!\{)|[^`\\$])+/y;
const REGULAR_EXPRESSION = /\/(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\[\n])+\/\w*/y;
const TOKEN = /"(?:\\[^]|[^"\\])*"|'(?:\\[^]|[^'\\])*'|\$\{|=>|[\w$]+|[^]/y;

/** Whether a slash after the token is a division, and not the start of a regular expression. */
function endsValue(token: string): boolean {
  return (
    /[\w$)\]}"'`]$/.test(token) &&
    !/^(?:return|typeof|case|in|of|yield|await|void|throw|else|do)$/.test(token)
  );
}
