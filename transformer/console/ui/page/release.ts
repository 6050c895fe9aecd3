import { onOneLine } from "../../../terminal/escape";
import { byId, element } from "./dom";
import { leftText, withSite } from "./locks";
import { askRelease, confirmRelease } from "./requests";
import { holderText } from "./text";

/**
 * Sets up the buttons that release a lock by force. The user first chooses whether to revoke or to free it. Then a dialog shows the
 * holders. Freeing a lock under which a body may run requires the user to type its key.
 */
export function offerRelease(shownKey: () => string | undefined): void {
  const dialog = byId("release", HTMLDialogElement);
  const status = byId("release-result", HTMLElement);
  const ask = async (now: boolean): Promise<void> => {
    const key = shownKey();
    if (key === undefined) return;
    status.textContent = "";
    try {
      const reply = await askRelease(key, now);
      if ("result" in reply) status.textContent = reply.result;
      else
        showDialog(
          key,
          now,
          reply.question,
          reply.confirmation,
          reply.lock.holders.map((one) => `${withSite(holderText(one), one)}, ${leftText([one])} left`),
        );
    } catch (error) {
      status.textContent = (error as Error).message;
    }
  };
  const showDialog = (
    key: string,
    now: boolean,
    question: string,
    confirmation: string,
    holders: readonly string[],
  ): void => {
    const typed = element("input", {
      "aria-label": "The lock's key",
      autocomplete: "off",
      spellcheck: "false",
    });
    const yes = element("button", { type: "submit", class: "danger" }, now ? "Free it now" : "Revoke it");
    yes.disabled = now;
    typed.addEventListener("input", () => (yes.disabled = typed.value !== onOneLine(key)));
    const form = element(
      "form",
      { method: "dialog" },
      element("h2", {}, onOneLine(key)),
      ...(holders.length === 0
        ? []
        : [
            element("p", {}, "It is held by:"),
            element("ul", {}, ...holders.map((holder) => element("li", {}, holder))),
          ]),
      element("p", { class: "question" }, question),
      ...(now ? [element("label", {}, "Type its key to confirm: ", typed)] : []),
      element("menu", {}, element("button", { type: "button", value: "no" }, "Cancel"), yes),
    );
    form.querySelector("button[value=no]")?.addEventListener("click", () => dialog.close());
    form.addEventListener("submit", () => {
      if (yes.disabled) return;
      void confirmRelease(confirmation).then(
        (reply) => void (status.textContent = reply.result),
        (error: unknown) => void (status.textContent = (error as Error).message),
      );
    });
    dialog.replaceChildren(form);
    dialog.showModal();
  };
  byId("revoke", HTMLButtonElement).addEventListener("click", () => void ask(false));
  byId("free", HTMLButtonElement).addEventListener("click", () => void ask(true));
}
