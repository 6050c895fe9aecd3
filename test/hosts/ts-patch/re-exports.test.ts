import test, { type ExecutionContext } from "ava";
import ts from "typescript";
import { reExportsIn } from "../../../transformer/hosts/ts-patch/re-exports";

const MAIN = "/main.ts";
/** Ends a search that reads a file again and again. */
const TOO_MANY_READS = 1_000;

/** Returns a program in which each layer re-exports the next three, and the innermost one re-exports the outermost one. */
function layered(layers: number): ts.Program {
  const outermost = `./layer${layers - 1}.js`;
  const texts = new Map([
    [MAIN, `import { setUp } from "${outermost}";\nsetUp({});\n`],
    ["/inner.ts", `export * from "${outermost}";\nexport { configure as setUp } from "lockweave";\n`],
  ]);
  for (let layer = 0; layer < layers; layer += 1) {
    const below = [1, 2, 3].map((step) => (layer < step ? "inner" : `layer${layer - step}`));
    texts.set(`/layer${layer}.ts`, below.map((name) => `export * from "./${name}.js";\n`).join(""));
  }
  const options = { module: ts.ModuleKind.ESNext, moduleResolution: ts.ModuleResolutionKind.Bundler };
  const host: ts.CompilerHost = {
    ...ts.createCompilerHost(options),
    fileExists: (name) => texts.has(name),
    readFile: (name) => texts.get(name),
    getSourceFile: (name, target) => ts.createSourceFile(name, texts.get(name) ?? "", target),
  };
  return ts.createProgram({ rootNames: [MAIN], options: { ...options, noLib: true }, host });
}

/** Returns how often the search reads the statements of the file that it reads most often. */
function mostReads(t: ExecutionContext, layers: number): number {
  const program = layered(layers);
  const reads = program.getSourceFiles().map((file) => {
    const count = { reads: 0 };
    const { statements } = file;
    Object.defineProperty(file, "statements", {
      get() {
        count.reads += 1;
        if (count.reads > TOO_MANY_READS) throw new Error(`${file.fileName} is read again and again`);
        return statements;
      },
    });
    return count;
  });
  t.is(reads.length, layers + 2);
  const main = program.getSourceFile(MAIN);
  const found = main && reExportsIn(ts, program)(main)?.(`./layer${layers - 1}.js`);
  t.is(found?.get("setUp"), "configure");
  return Math.max(...reads.map((count) => count.reads));
}

test("a barrel is not read more often if more layers of barrels import each other", (t) => {
  const few = mostReads(t, 6);
  t.true(few > 0);
  t.is(mostReads(t, 60), few);
});
