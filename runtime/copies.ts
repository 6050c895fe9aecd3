// A process may load several copies of this package: of two versions, or because each of two packages has its own. Only the
// copy that the application calls is configured, and nobody expects that there is another.

/** Where all copies find each other, whatever their version is. */
const CONFIGURED = Symbol.for("lockweave.configured copies");

interface WithCopies {
  [CONFIGURED]?: Set<string>;
}

/** Tells the other copies that this one has a configuration. */
export function noteConfigured(): void {
  const here = globalThis as WithCopies;
  (here[CONFIGURED] ??= new Set()).add(ownPath());
}

/** What to say of copies when this one has no configuration. Empty if no other has one either. */
export function adviceOnCopies(): string {
  const own = ownPath();
  const others = [...((globalThis as WithCopies)[CONFIGURED] ?? [])].filter((path) => path !== own);
  if (others.length === 0) return "";
  return `This process has several copies of lockweave. Configured is ${others.join(", ")}, but not ${own}, which the failing function imports. Fix: a library with tags names lockweave under "peerDependencies" and not under "dependencies"; then \`npm ls lockweave\` shows one copy`;
}

/** A bundler may leave a module without a path of its own. */
function ownPath(): string {
  return typeof __filename === "string" ? __filename : "a bundled copy";
}
