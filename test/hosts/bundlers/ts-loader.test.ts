import { bundle, bundlerNamed, projectOf } from "./bundlers";
import { recipe } from "./recipes";
import { ORDER, placeIn, SOURCES } from "./sources";
import { inMatrix } from "../../support/suites";

// It runs only in the matrix, since it is too heavy for every test run.

inMatrix(
  "ts-loader with type checking checks the key and reports the line of the tagged function",
  async (t) => {
    const webpack = bundlerNamed("webpack");
    const { file, text } = recipe("webpack");
    const checking = text.replace("transpileOnly: true", "transpileOnly: false");
    t.not(checking, text);
    const order = ORDER.replace("keyName=orderNo lockTime", "keyName=orderNo.size lockTime");
    const project = await projectOf(webpack, { ...SOURCES, "src/order.ts": order });
    await project.write({ [file]: checking });
    const { code, stdout, stderr } = await bundle(project, webpack);
    t.is(code, 1);
    t.regex(stdout + stderr, /TS2339: .*Property 'size' does not exist on type 'string'/);
    const { line } = placeIn(order, "async pay(");
    t.regex(stdout + stderr, new RegExp(`src/order\\.ts(?::|\\(| )${line}[:,]`));
  },
);
