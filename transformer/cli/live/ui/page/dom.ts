type Child = Node | string;

/** An element. What is put into it as a text stays a text: names of locks may be anything. */
export function element<Name extends keyof HTMLElementTagNameMap>(
  name: Name,
  attributes: Readonly<Record<string, string>>,
  ...children: readonly Child[]
): HTMLElementTagNameMap[Name] {
  const made = document.createElement(name);
  for (const [attribute, value] of Object.entries(attributes)) made.setAttribute(attribute, value);
  made.append(...children);
  return made;
}

export function drawing<Name extends keyof SVGElementTagNameMap>(
  name: Name,
  attributes: Readonly<Record<string, string | number>>,
  ...children: readonly Child[]
): SVGElementTagNameMap[Name] {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [attribute, value] of Object.entries(attributes)) made.setAttribute(attribute, String(value));
  made.append(...children);
  return made;
}

/** @throws {Error} where the page has no such element */
export function byId<Kind extends Element>(id: string, kind: abstract new () => Kind): Kind {
  const found = document.getElementById(id);
  if (found instanceof kind) return found;
  throw new Error(`The page has no #${id}`);
}

/**
 * Makes the children those that are wanted, in their order. One that is there already stays, with its focus and its hover, and is
 * only put anew where it differs.
 *
 * @param wanted by their keys
 */
export function show(parent: Element, wanted: ReadonlyMap<string, Element>): void {
  const old = new Map([...parent.children].map((child) => [child.getAttribute("data-key") ?? "", child]));
  let next = parent.firstElementChild;
  for (const [key, made] of wanted) {
    made.setAttribute("data-key", key);
    const before = old.get(key);
    old.delete(key);
    const child = before ?? made;
    if (before !== undefined && !before.isEqualNode(made)) renew(before, made);
    if (child === next) next = child.nextElementSibling;
    else parent.insertBefore(child, next);
  }
  for (const child of old.values()) child.remove();
}

/** What differs is replaced, as deep inside as can be: so what has the focus keeps it. */
function renew(old: Element, made: Element): void {
  for (const name of old.getAttributeNames()) if (!made.hasAttribute(name)) old.removeAttribute(name);
  for (const { name, value } of made.attributes)
    if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  const [oldNodes, madeNodes] = [[...old.childNodes], [...made.childNodes]];
  madeNodes.forEach((node, index) => {
    const before = oldNodes[index];
    if (before === undefined) old.append(node);
    else if (before.isEqualNode(node)) return;
    else if (before instanceof Element && node instanceof Element && before.tagName === node.tagName)
      renew(before, node);
    else before.replaceWith(node);
  });
  for (const extra of oldNodes.slice(madeNodes.length)) extra.remove();
}
