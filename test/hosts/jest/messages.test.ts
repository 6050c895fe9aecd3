import { join } from "node:path";
import test from "ava";
import { createTransformer } from "../../../transformer/hosts/jest/transformer";
import { makeProject } from "../project";

const PAY = `/** @redisLock businessFlag=pay lockTime=30000 */
export async function pay(): Promise<void> {}
`;

const path = join(process.cwd(), "src/pay.ts");

async function givenWith(
  inner: string,
): Promise<Parameters<Required<ReturnType<typeof createTransformer>>["process"]>[2]> {
  const project = await makeProject({ "package.json": "{}", "inner.js": inner });
  return { config: { rootDir: project.dir }, configString: "", instrument: false };
}

test.serial("a suspicious tag is a warning on stderr, and the file is still compiled", async (t) => {
  const given = await givenWith("exports.process = (code) => ({ code });");
  const { write } = process.stderr;
  const written: string[] = [];
  process.stderr.write = (text: string | Uint8Array): boolean => written.push(String(text)) > 0;
  try {
    const made = createTransformer({ transformer: "./inner" }).process?.(PAY, path, given);
    t.regex(made?.code ?? "", /lockweave\.acquire\(/);
  } finally {
    process.stderr.write = write;
  }
  t.regex(written.join(""), /^src\/pay\.ts\(1,42\): warning LW\d{4}: .*lockTime.*\n$/);
});

test("requiring a file is an error that names a transformer with only an async process", async (t) => {
  const given = await givenWith("exports.processAsync = async (code) => ({ code });");
  const transformer = createTransformer({ transformer: "./inner" });
  t.throws(() => transformer.process?.(PAY.replace(" lockTime=30000", ""), path, given), {
    message:
      "./inner compiles imported files, but not required ones. Fix: load this file with `import`, or configure a transformer that has `process()`.",
  });
});

test("uses Jest's default transformer if none is configured", async (t) => {
  const project = await makeProject({
    "package.json": "{}",
    "node_modules/babel-jest/index.js": "exports.process = (code) => ({ code: `${code}// By Babel.` });",
  });
  const given = { config: { rootDir: project.dir }, configString: "", instrument: false };
  t.true(createTransformer().process?.("export {};", path, given).code.endsWith("// By Babel."));
});
