// The functions that woven code calls. These are the types of `lockweave/runtime`, so that editors do not offer these names for `lockweave`.

export {
  when,
  open,
  unlocked,
  acquire,
  retryCheck,
  assertHeld,
  runReentrant,
  fail,
  release,
  expectNeeds,
  needs,
  refuse,
  type Site,
  type NeededSite,
} from "./woven";
export { needsStore } from "../config/configure";
export { jsonField } from "./json-field";
export { wholeKey } from "../base/key";
export type { Lock } from "../lock/lock";
export type { MultiLock } from "../lock/multi-lock";
export type { FailureClass } from "../lock/wait";
