/** The releases under way that nobody waits for: so many at most. */
export class OpenReleases {
  readonly #most: number;
  #size = 0;

  constructor(most: number) {
    this.#most = most;
  }

  /** Returns whether there is room for one more, which is then under way. */
  begin(): boolean {
    if (this.#size >= this.#most) return false;
    this.#size += 1;
    return true;
  }

  end(): void {
    this.#size -= 1;
  }
}
