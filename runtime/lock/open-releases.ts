/** Counts the releases in flight for which no caller waits, and limits their number. */
export class OpenReleases {
  readonly #limit: number;
  #size = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Adds a release, unless the limit is reached. Returns whether it was added. */
  begin(): boolean {
    if (this.#size >= this.#limit) return false;
    this.#size += 1;
    return true;
  }

  end(): void {
    this.#size -= 1;
  }
}
