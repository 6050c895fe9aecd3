/** Returns a function that runs at most this many tasks at once. The others wait in order. */
export function atMost(tasks: number): (run: () => Promise<void>) => Promise<void> {
  let running = 0;
  const waiting: (() => void)[] = [];
  return async (run) => {
    if (running === tasks) await new Promise<void>((resolve) => waiting.push(resolve));
    else running += 1;
    try {
      await run();
    } finally {
      const next = waiting.shift();
      if (next === undefined) running -= 1;
      else next();
    }
  };
}
