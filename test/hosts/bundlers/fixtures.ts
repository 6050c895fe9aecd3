import ts from "typescript";
import { weave } from "../../../transformer/weave/weave";
import { fixtures } from "../fixtures";
import type { Files } from "../project";

/** The inputs, each with its own file name. */
export const INPUTS: Files = Object.fromEntries(
  fixtures.map(({ name, input, text }) => [`src/${input.replace("input", name)}`, text]),
);

/** The woven texts as ES modules, since bundlers convert to CommonJS themselves. */
export const WOVEN: Files = Object.fromEntries(
  Object.entries(INPUTS).map(([file, text]) => [file, weave(file, text, { ts, module: "esm" })?.code ?? ""]),
);
