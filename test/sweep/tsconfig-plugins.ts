import type { Setup } from "./setup";

/** The other plugins in tsconfig.json. One that loads is a program transformer with its own texts. */
export const PLUGINS: Readonly<Record<Setup["order"], readonly object[]>> = {
  first: [],
  forgotten: [],
  "loads-keeping": [{ transform: "./other-program.cjs", transformProgram: true, keeping: true }],
  "loads-stripping": [{ transform: "./other-program.cjs", transformProgram: true, keeping: false }],
  "transforms-keeping": [{ transform: "./other-source.cjs", keeping: true }],
  "transforms-stripping": [{ transform: "./other-source.cjs", keeping: false }],
};

const PROGRAM = String.raw`exports.default = (program, host, { keeping }, { ts }) => {
  const options = program.getCompilerOptions();
  const original = host ?? ts.createCompilerHost(options);
  const getSourceFile = (fileName, settings, ...rest) => {
    const found = original.getSourceFile(fileName, settings, ...rest);
    if (found === undefined || !/(?:shop|main)\.[cm]?tsx?$/.test(fileName)) return found;
    const text = keeping ? found.text + "\n// Seen.\n" : found.text.replace(/\/\*\*[^]*?\*\//g, "");
    const file = ts.createSourceFile(fileName, text, settings);
    file.version = (found.version ?? "") + keeping;
    return file;
  };
  return (ts.originalCreateProgram ?? ts.createProgram)({
    rootNames: program.getRootFileNames(),
    options,
    host: Object.assign(Object.create(original), { getSourceFile }),
  });
};
`;

const SOURCE = String.raw`const ts = require("typescript");
exports.default = (program, { keeping }) => (context) => (file) => {
  const visit = (node) => {
    const visited = ts.visitEachChild(node, visit, context);
    return keeping ? visited : ts.setEmitFlags(visited, ts.EmitFlags.NoComments);
  };
  return ts.visitNode(file, visit);
};
`;

export const PLUGIN_FILES = { "other-program.cjs": PROGRAM, "other-source.cjs": SOURCE };
