// A process may load several copies of this package: the CommonJS build and the ES module, copies inside bundles, or copies that
// several packages have installed. Copies of one version share what the first of them exports, so there is one configuration and
// one class of each error. Copies of different versions share nothing.

import { LockMisconfiguredError } from "./errors";
import { ownPath } from "./own-path";
import { VERSION } from "./version";

/** All versions find each other here, so this form cannot change. */
const COPIES = Symbol.for("lockweave.copies");

interface Copy {
  readonly version: string;
  readonly path: string;
  readonly exports: object;
  isConfigured: boolean;
}

/** The entry of this copy. `undefined` if another copy of its version was loaded first, since then nobody calls this one. */
let own: Copy | undefined;

/**
 * Returns the exports of the first loaded copy of this version. Without an earlier copy, these are the given exports.
 *
 * @public called by a module that the build writes
 */
export function shareWithCopies<Exports extends object>(exports: Exports): Exports {
  const copies = allCopies();
  const first = copies.find(({ version }) => version === VERSION);
  if (first !== undefined) return first.exports as Exports;
  own = { version: VERSION, path: ownPath(), exports, isConfigured: false };
  copies.push(own);
  return exports;
}

function allCopies(): Copy[] {
  return ((globalThis as { [COPIES]?: Copy[] })[COPIES] ??= []);
}

function otherCopies(): Copy[] {
  return own === undefined ? [] : allCopies().filter((copy) => copy !== own);
}

/** @throws {LockMisconfiguredError} if this process has also loaded another version of the package */
export function assertOneVersion(): void {
  const others = otherCopies();
  if (others.length === 0) return;
  throw new LockMisconfiguredError(
    `This process has loaded several versions of lockweave: ${[own, ...others].map(describe).join(", and ")}. Each version needs its own configuration. ${FIX}`,
  );
}

/** Tells the other versions that this one has a configuration. */
export function noteConfigured(): void {
  if (own !== undefined) own.isConfigured = true;
}

/** Returns the message about other versions that have a configuration, if this one has none. Otherwise returns an empty text. */
export function adviceOnCopies(): string {
  const configured = otherCopies().filter(({ isConfigured }) => isConfigured);
  if (configured.length === 0) return "";
  return `This process has loaded several versions of lockweave. configure() was called in ${configured.map(describe).join(", ")}, but not in ${describe(own)}, which the failing function imports. ${FIX}`;
}

const FIX =
  'Fix: in each library with tags, list lockweave in "peerDependencies", not in "dependencies". `npm ls lockweave` then shows one version';

function describe(copy: Copy | undefined): string {
  return `${copy?.version} (${copy?.path})`;
}
