/** A promise that resolves when it is opened from outside. */
export class Latch {
  readonly opened: Promise<void>;
  readonly #open: () => void;

  constructor() {
    let open = (): void => {};
    this.opened = new Promise((resolve) => (open = resolve));
    this.#open = () => open();
  }

  open(): void {
    this.#open();
  }
}
