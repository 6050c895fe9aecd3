/** A woven method. */
export const WOVEN = `import * as lockweave from "lockweave/runtime";
export class OrderService {
  async pay(orderNo, tenant) {
    const lock = lockweave.open({ site: "OrderService.pay", businessFlag: "payOrder", fencing: true }, orderNo, tenant.id);
    while (!(await lockweave.acquire(lock))) void (await lockweave.retryCheck(lock));
    try { lockweave.assertHeld(lock); if (orderNo) return await this.charge(orderNo); }
    catch (error) { throw lockweave.fail(lock, error); }
    finally { await lockweave.release(lock); }
  }
}
`;

/** Edits after which the function does not count as locked: a text of the woven code, and what replaces it. */
export const EDITS: Readonly<Record<string, readonly [from: string, to: string]>> = {
  "open() is not called": ["lockweave.open(", "("],
  "the result of open() is not kept": ["const lock = ", ""],
  "another function is called instead of open()": ["lockweave.open(", "lockweave.close("],
  "the site is not a literal": [`"OrderService.pay"`, "name"],
  "the site has a spread": ["fencing: true", "...options"],
  "it does not await acquire()": ["(await lockweave.acquire(lock))", "lockweave.acquire(lock)"],
  "it acquires another lock": ["acquire(lock)", "acquire(other)"],
  "its loop ends when the lock is not acquired": ["!(await", "(await"],
  "it may continue without the lock": ["while (!", "if (!"],
  "there is another way out of the loop": [
    "void (await lockweave.retryCheck(lock));",
    "{ void (await lockweave.retryCheck(lock)); break; }",
  ],
  "it does not call retryCheck()": ["void (await lockweave.retryCheck(lock));", ";"],
  "it does not await retryCheck()": ["await lockweave.retryCheck", "lockweave.retryCheck"],
  "the loop has a third condition": ["(lock))) void", "(lock)) && tenant) void"],
  "work is done before the lock": ["const lock", "await this.charge(orderNo); const lock"],
  "work is done before the lock, in a variable": ["const lock", "const paid = await this.charge(), lock"],
  "work is done before the loop": ["while", "await this.charge(orderNo); while"],
  "work is done before the body": ["try {", "await this.charge(orderNo); try {"],
  "work is done after the body": ["release(lock); }", "release(lock); } return this.charge(orderNo);"],
  "the body is outside of the lock": [
    "lockweave.assertHeld(lock); if (orderNo) return await this.charge(orderNo); }",
    "lockweave.assertHeld(lock); } finally { await lockweave.release(lock); } try { await this.charge(orderNo); }",
  ],
  "the body does not call assertHeld()": ["lockweave.assertHeld(lock);", ""],
  "the body calls assertHeld() with another lock": ["assertHeld(lock)", "assertHeld(other)"],
  "work is done before assertHeld()": ["lockweave.assertHeld(lock);", "work(), lockweave.assertHeld(lock);"],
  ...Object.fromEntries(
    [
      ["a variable", "const paid = work();"],
      ["a member of a variable", "const paid = { by: work() };"],
      ["an element of a variable", "const paid = [work()];"],
      ["a variable next to one that is a function", "const paid = () => 1, bill = work();"],
      ["a pattern, which may call a getter", "const { id } = tenant;"],
      ["a class, which may have a static block", "class Paid { static { work(); } }"],
    ].map(([where, code]) => [
      `work is done before assertHeld(), in ${where}`,
      ["lockweave.assertHeld(lock);", `${code} lockweave.assertHeld(lock);`],
    ]),
  ),
  "the error of assertHeld() is caught": [
    "lockweave.assertHeld(lock);",
    "try { lockweave.assertHeld(lock); } catch {}",
  ],
  "assertHeld() is called only on a condition": [
    "lockweave.assertHeld(lock);",
    "if (orderNo) lockweave.assertHeld(lock);",
  ],
  "an error is not passed to fail()": ["lockweave.fail(lock, error)", "error"],
  "an error is swallowed": ["throw lockweave.fail(lock, error)", "lockweave.fail(lock, error)"],
  "another error is passed to fail()": ["fail(lock, error)", "fail(lock, other)"],
  "there is no catch": ["catch (error) { throw lockweave.fail(lock, error); }", ""],
  "there is no finally": ["finally { await lockweave.release(lock); }", ""],
  "the lock is not released": ["await lockweave.release(lock);", ""],
  "the release is not awaited": ["await lockweave.release", "lockweave.release"],
  "another lock is released": ["release(lock)", "release(other)"],
  "work is done in a variable after the lock": [
    "orderNo, tenant.id);",
    "orderNo, tenant.id), paid = this.charge();",
  ],
  "it is declared reentrant but does not call runReentrant()": ["fencing: true", "reentrant: true"],
  ...Object.fromEntries(
    ["acquire", "retryCheck", "assertHeld", "release"].map((step) => [
      `work is done in another argument of ${step}()`,
      [`${step}(lock)`, `${step}(lock, await this.charge(orderNo))`],
    ]),
  ),
  "work is done in another argument of fail()": ["(lock, error)", "(lock, error, this.charge(orderNo))"],
  "work is done before assertHeld(), in a loop": [
    "lockweave.assertHeld(lock);",
    "do { await this.charge(orderNo); } while (lockweave.assertHeld(lock));",
  ],
  "all calls share the variable of the lock": ["const lock =", "lock ="],
  "the body declares another lock": [
    "lockweave.assertHeld(lock);",
    "const lock = tenant; lockweave.assertHeld(lock);",
  ],
  "the error has the name of the lock": [
    "catch (error) { throw lockweave.fail(lock, error)",
    "catch (lock) { throw lockweave.fail(lock, lock)",
  ],
};
