import type { Files, Starter } from "./starters";

const SERVICE = `import { Injectable } from '@nestjs/common';

@Injectable()
export class PayService {
  /** @redisLock businessFlag=starter keyName=id */
  async pay(id: string, gate: string): Promise<string> {
    await fetch(gate);
    return \`\${id} is paid\`;
  }
}
`;

/** @param js the extension in imports */
function files(js: string): Files {
  return {
    "src/pay.service.ts": SERVICE,
    "src/pay.controller.ts": `import { Controller, Get, Query } from '@nestjs/common';
import { PayService } from './pay.service${js}';

@Controller('pay')
export class PayController {
  constructor(private readonly payService: PayService) {}

  @Get()
  async pay(@Query('gate') gate: string): Promise<string> {
    return this.payService.pay('A1', gate);
  }
}
`,
    "src/pay.controller.spec.ts": `import { Test } from '@nestjs/testing';
import { assertWoven } from 'lockweave';
import { testLocks } from 'lockweave/testing';
import { PayController } from './pay.controller${js}';
import { PayService } from './pay.service${js}';

const locks = testLocks();
afterAll(() => locks.close());

it('pays under a lock', async () => {
  // eslint-disable-next-line @typescript-eslint/unbound-method
  assertWoven(PayService.prototype.pay);
  const parts = { controllers: [PayController], providers: [PayService] };
  const app = await Test.createTestingModule(parts).compile();
  expect(await app.get(PayController).pay('data:,')).toBe('A1 is paid');
  expect(locks.acquired).toEqual(['LOCK_starter_A1']);
});
`,
  };
}

function addPay(text: string, js: string): string {
  return text
    .replace(
      "@Module",
      `import { PayController } from './pay.controller${js}';\nimport { PayService } from './pay.service${js}';\n\n@Module`,
    )
    .replace("[AppController]", "[AppController, PayController]")
    .replace("[AppService]", "[AppService, PayService]");
}

function configured(text: string): string {
  return text
    .replace("async function", "import { configure } from 'lockweave';\n\nasync function")
    .replace("{\n", "{\n  configure({ redis: process.env.REDIS_URL ?? 'redis://localhost:6379' });\n");
}

function nest(version: string, js: string): Omit<Starter, "name"> {
  return {
    create: `npx @nestjs/cli@${version} new app --skip-git --skip-install --package-manager npm`,
    files: files(js),
    edit: { "src/app.module.ts": (text) => addPay(text, js), "src/main.ts": configured },
    tagged: "src/pay.service.ts",
    build: "npm run build",
    start: { command: "npm run start:prod", route: "/pay?gate={gate}" },
    test: "npm test",
    lint: "npm run lint",
    check: "",
  };
}

const NEST_11 = nest("11.0.24", "");
const NEST_12 = nest("12.0.8", ".js");

/**
 * @param packages the packages that the builder needs in addition to those of the starter
 * @param options lines of the compiler options in NestJS's configuration
 */
function builtBy(
  builder: string,
  packages: string,
  starter: Omit<Starter, "name">,
  options = "",
): Omit<Starter, "name"> {
  return {
    ...starter,
    install: `npm install {lockweave} ioredis@6.0.0 && npm install --save-dev ${packages}`,
    edit: {
      ...starter.edit,
      "nest-cli.json": (text) =>
        text.replace('"compilerOptions": {', `"compilerOptions": {\n    "builder": "${builder}",${options}`),
    },
    check: '--output "dist/**/*.js"',
  };
}

const SWC = "@swc/core@1.16.22 @swc/cli@0.8";

/** The application starts with a hook that weaves swc's output, so the output contains no locks. */
function builtBySwc(starter: Omit<Starter, "name">, options = ""): Omit<Starter, "name"> {
  const { check: _, ...rest } = builtBy("swc", SWC, starter, options);
  return rest;
}

/** Turns the project into a monorepo, where NestJS 11 builds with webpack, and NestJS 12 with Rspack. */
function inMonorepo(
  version: string,
  packages: string,
  starter: Omit<Starter, "name">,
  lint: string,
): Omit<Starter, "name"> {
  const moved = <V>(entries: Readonly<Record<string, V>> = {}): Record<string, V> =>
    Object.fromEntries(Object.entries(entries).map(([file, value]) => [`apps/app/${file}`, value]));
  const generate = `npx @nestjs/cli@${version} generate app second`;
  return {
    ...starter,
    create: `${starter.create ?? ""} && cd app && npm install && ${generate}`,
    install: `npm install {lockweave} ioredis@6.0.0 && npm install --save-dev ${packages}`,
    files: moved(starter.files),
    edit: moved(starter.edit),
    tagged: `apps/app/${starter.tagged}`,
    lint, // The scripts of the starters fail in a monorepo, also without Lockweave.
    check: '--output "dist/**/*.js"',
  };
}

const WEBPACK = "webpack@5.112.2 webpack-node-externals@3";
const RSPACK = "@rspack/core@2 webpack-node-externals@3 tsconfig-paths-webpack-plugin@4";

export const NEST: readonly Starter[] = [
  { name: "nest-11", ...NEST_11 },
  { name: "nest-12", ...NEST_12 },
  {
    name: "nest-11-webpack",
    ...builtBy("webpack", WEBPACK, NEST_11),
  },
  {
    name: "nest-11-swc",
    ...builtBySwc(NEST_11),
    reports: "npm run build && npm run start:prod",
  },
  { name: "nest-12-swc", ...builtBySwc(NEST_12, '\n    "typeCheck": true,') },
  {
    name: "nest-12-rspack",
    ...builtBy("rspack", RSPACK, NEST_12),
  },
  { name: "nest-11-monorepo", ...inMonorepo("11.0.24", WEBPACK, NEST_11, "npx eslint apps/app") },
  { name: "nest-12-monorepo", ...inMonorepo("12.0.8", RSPACK, NEST_12, "npx oxlint --type-aware apps/app") },
];
