import ts from "typescript";
import { weave } from "../../../transformer/weave/weave";
import { fixtures } from "../fixtures";
import type { Files } from "../project";

/** The inputs, each under a name of its own. */
export const INPUTS: Files = Object.fromEntries(
  fixtures.map(({ name, input, text }) => [`src/${input.replace("input", name)}`, text]),
);

/** As every bundler takes them: what is CommonJS in the end is the bundler's business. */
export const WOVEN: Files = Object.fromEntries(
  Object.entries(INPUTS).map(([file, text]) => [file, weave(file, text, { ts, module: "esm" })?.code ?? ""]),
);
