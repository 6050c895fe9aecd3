/**
 * Measures the cost of a lock without any store traffic: a tagged function on the memory store, compared with a hand-written lock in a
 * `Map` with try/finally. Each runs in its own process, in turns. The sections are empty, so only the lock itself is measured.
 *
 *     npm run bench -- memory [rounds]
 */
import { execFileSync } from "node:child_process";
import type * as Lockweave from "../runtime";
import type * as WovenEntry from "../runtime/woven/entry";
import { quartiles } from "./quantiles";

const lockweave = require("../dist/runtime/index") as typeof Lockweave & typeof WovenEntry;

const WARM_MS = 1_500;
const MEASURED_MS = 1_500;

type Section = (orderNo: number) => Promise<number>;

/** A lock as a careful programmer writes it: each caller waits for the promise of the one before. */
function byHand(): Section {
  const held = new Map<string, Promise<void>>();
  return async (orderNo) => {
    const key = `payOrder_${orderNo}`;
    while (held.has(key)) await held.get(key);
    let release = (): void => {};
    const released = new Promise<void>((resolve) => {
      release = resolve;
    });
    held.set(key, released);
    try {
      return await body(orderNo);
    } finally {
      held.delete(key);
      release();
    }
  };
}

/** The code that the weave generates. */
function woven(): Section {
  lockweave.configure({ store: lockweave.memoryStore(), woven: false });
  return async (orderNo) => {
    const lock = lockweave.open({ site: "OrderService.pay", businessFlag: "payOrder" }, orderNo);
    while (!(await lockweave.acquire(lock))) await lockweave.retryCheck(lock);
    try {
      lockweave.assertHeld(lock);
      return await body(orderNo);
    } catch (error) {
      throw lockweave.fail(lock, error);
    } finally {
      await lockweave.release(lock);
    }
  };
}

async function body(orderNo: number): Promise<number> {
  return await Promise.resolve(orderNo);
}

const PLAYERS = { byHand, woven };
type Player = keyof typeof PLAYERS;

/**
 * Runs sections repeatedly.
 *
 * @returns the CPU time of a section in microseconds
 */
async function play(section: Section): Promise<number> {
  const until = async (ms: number): Promise<number> => {
    const end = performance.now() + ms;
    let sections = 0;
    while (performance.now() < end) {
      for (let nth = 0; nth < 100; nth += 1) await section(sections + nth);
      sections += 100;
    }
    return sections;
  };
  await until(WARM_MS);
  const before = process.cpuUsage();
  const sections = await until(MEASURED_MS);
  const { user, system } = process.cpuUsage(before);
  return (user + system) / sections;
}

function inOwnProcess(player: Player): number {
  const args = ["--require", "ts-node/register/transpile-only", __filename, "--play", player];
  return Number(execFileSync(process.execPath, args, { encoding: "utf8" }));
}

async function main([first, second]: readonly string[]): Promise<void> {
  if (first === "--play") {
    console.log(await play(PLAYERS[second as Player]()));
    return;
  }
  const rounds = Number(first ?? 5);
  const figures = Array.from({ length: rounds }, () => ({
    hand: inOwnProcess("byHand"),
    ours: inOwnProcess("woven"),
  }));
  const formatted = (numbers: readonly number[]): string => {
    const { low, median, high } = quartiles(numbers);
    return `${median.toFixed(2)} (${low.toFixed(2)} to ${high.toFixed(2)})`;
  };
  console.log("microseconds of CPU a section, medians (quartiles)");
  console.log(`  by hand  ${formatted(figures.map(({ hand }) => hand))}`);
  console.log(`  woven    ${formatted(figures.map(({ ours }) => ours))}`);
  console.log(`  ratio    ${formatted(figures.map(({ hand, ours }) => ours / hand))}`);
}

void main(process.argv.slice(2));
