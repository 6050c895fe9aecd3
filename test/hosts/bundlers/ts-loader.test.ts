import { bundle, bundlerNamed, projectOf } from "./bundlers";
import { recipe } from "./recipes";
import { ORDER, placeIn, SOURCES } from "./sources";
import { inMatrix } from "../../support/suites";

// Too heavy for every run of the tests.

inMatrix(
  "ts-loader that checks types checks the key, and tells the line of the tag's function",
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
