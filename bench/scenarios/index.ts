import { crowd } from "./crowd";
import { distinctKeys } from "./distinct-keys";
import { far } from "./far";
import { fleet } from "./fleet";
import { growth } from "./growth";
import { held } from "./held";
import { oneCaller, oneCallerThatLeaves } from "./one-caller";
import { steady } from "./steady";
import { waiters } from "./waiters";
import type { Scenario } from "./scenario";

/** The scenarios in the order in which they are played and reported. */
export const SCENARIOS: readonly Scenario[] = [
  oneCaller,
  oneCallerThatLeaves,
  ...distinctKeys,
  ...crowd,
  fleet,
  ...steady,
  held,
  waiters,
  growth,
  ...far,
];
