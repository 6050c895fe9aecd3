/** Prices that are read again and again, and now and then replaced as a whole. */
export class PriceList {
  readonly #prices = new Map<string, number>();
  readonly #log: (line: string) => void;
  /** How many are reading, and how many were at most. */
  readonly reading = { now: 0, most: 0 };

  constructor(log: (line: string) => void) {
    this.#log = log;
  }

  /** @redisLock businessFlag=prices mode=read */
  async total(articles: readonly string[]): Promise<number> {
    this.reading.now += 1;
    this.reading.most = Math.max(this.reading.most, this.reading.now);
    let total = 0;
    for (const article of articles) total += await this.#price(article);
    this.reading.now -= 1;
    return total;
  }

  /** @redisLock businessFlag=prices mode=write */
  async replace(prices: Readonly<Record<string, number>>): Promise<void> {
    this.#log(`${this.reading.now} read while the prices are replaced`);
    this.#prices.clear();
    await pause(20); // A reader would see no prices now, or half of them.
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
