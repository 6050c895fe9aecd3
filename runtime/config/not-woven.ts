import { RUNNER } from "../base/runner";

/** The message of `configure()` in a build that was not woven. */
export const NOT_WOVEN = [
  "This build was not woven: functions with @redisLock would run unlocked.",
  `Fix: run \`${RUNNER} lockweave init\`. It sets up your compiler or bundler, and shows each change before it writes. By hand:`,
  '- tspc (from ts-patch): { "transform": "lockweave/transformer", "transformProgram": true } among the `plugins` in tsconfig.json. Plain tsc ignores plugins.',
  "- NestJS with tsc or webpack: that plugin, and a TypeScript that `ts-patch install` has patched.",
  "- NestJS with swc: start the output with `node --import lockweave/register`, and set `preserveAllComments` to true in .swcrc.",
  `- TypeScript 7: \`${RUNNER} lockweave build\`.`,
  "- Bundlers and Next.js: Lockweave's plugin. Jest: lockweave/jest.",
  "- Node's type stripping, tsx, Bun, and Deno: lockweave/register, loaded before your code.",
  "If you have done that, check these points:",
  "- `plugins` in a tsconfig.json replace those of the file that it extends. `npm install` undoes `ts-patch install`.",
  '- ts-node needs "compiler": "ts-patch/compiler".',
  "- Call configure() directly by its imported name, or LockModule.forRoot() in NestJS. Do not pass it as a value.",
  "If the application has no tags: configure({ ..., woven: false }).",
].join("\n  ");
