type Child = Node | string;

/** Creates an element. Text children are never parsed as HTML, because keys may contain anything. */
export function element<Name extends keyof HTMLElementTagNameMap>(
  name: Name,
  attributes: Readonly<Record<string, string>>,
  ...children: readonly Child[]
): HTMLElementTagNameMap[Name] {
  const created = document.createElement(name);
  for (const [attribute, value] of Object.entries(attributes)) created.setAttribute(attribute, value);
  created.append(...children);
  return created;
}

export function drawing<Name extends keyof SVGElementTagNameMap>(
  name: Name,
  attributes: Readonly<Record<string, string | number>>,
  ...children: readonly Child[]
): SVGElementTagNameMap[Name] {
  const created = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [attribute, value] of Object.entries(attributes)) created.setAttribute(attribute, String(value));
  created.append(...children);
  return created;
}

/**
 * Returns an element of the page.
 *
 * @throws {Error} if the page has no such element
 */
export function byId<Kind extends Element>(id: string, kind: abstract new () => Kind): Kind {
  const found = document.getElementById(id);
  if (found instanceof kind) return found;
  throw new Error(`The page has no #${id}`);
}

/**
 * Updates the children of an element in place. An existing child keeps its focus and hover, and only its differences are replaced.
 *
 * @param wanted the new children in order, by key
 */
export function show(parent: Element, wanted: ReadonlyMap<string, Element>): void {
  const old = new Map([...parent.children].map((child) => [child.getAttribute("data-key") ?? "", child]));
  let next = parent.firstElementChild;
  for (const [key, created] of wanted) {
    created.setAttribute("data-key", key);
    const before = old.get(key);
    old.delete(key);
    const child = before ?? created;
    if (before !== undefined && !before.isEqualNode(created)) renew(before, created);
    if (child === next) next = child.nextElementSibling;
    else parent.insertBefore(child, next);
  }
  for (const child of old.values()) child.remove();
}

/** Replaces differences as deep in the tree as possible, so that a focused element keeps its focus. */
function renew(old: Element, created: Element): void {
  for (const name of old.getAttributeNames()) if (!created.hasAttribute(name)) old.removeAttribute(name);
  for (const { name, value } of created.attributes)
    if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  const [oldNodes, madeNodes] = [[...old.childNodes], [...created.childNodes]];
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
