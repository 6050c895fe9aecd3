/** Prices that callers read often, and sometimes replace all at once. */
export class PriceList {
  readonly #prices = new Map<string, number>();
  readonly #log: (line: string) => void;
  /** The number of readers, now and at most. */
  readonly readers = { now: 0, most: 0 };

  constructor(log: (line: string) => void) {
    this.#log = log;
  }

  /** @redisLock businessFlag=prices mode=read */
  async total(articles: readonly string[]): Promise<number> {
    this.readers.now += 1;
    this.readers.most = Math.max(this.readers.most, this.readers.now);
    let total = 0;
    for (const article of articles) total += await this.#price(article);
    this.readers.now -= 1;
    return total;
  }

  /** @redisLock businessFlag=prices mode=write */
  async replace(prices: Readonly<Record<string, number>>): Promise<void> {
    this.#log(`${this.readers.now} readers while the prices are replaced`);
    this.#prices.clear();
    await pause(20); // A reader would now see no prices, or only some of them.
    for (const [article, price] of Object.entries(prices)) this.#prices.set(article, price);
  }

  async #price(article: string): Promise<number> {
    await pause(20);
    return this.#prices.get(article) ?? NaN;
  }
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms);
  });
}
