/** Small helpers for building pages: text is always set as text, never as markup. */

/**
 * An element. `attributes` become attributes, except `on*` functions, `class` and values that are true or false.
 * @param {string} tag
 * @param {Record<string, any>} [attributes]
 * @param {...(Node | string | number | null | undefined | false)} children
 * @returns {any}
 */
export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, String(value));
  }
  element.append(...children.filter((child) => child !== null && child !== undefined && child !== false).map(asNode));
  return element;
}

/**
 * An element of a picture. Looks come from the style sheet, by class: the pages allow no style inside a document.
 * @param {string} tag
 * @param {Record<string, any>} [attributes]
 * @param {...(Node | string)} children
 * @returns {any}
 */
export function svg(tag, attributes = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
  element.append(...children);
  return element;
}

/** @param {any} child @returns {Node | string} */
const asNode = (child) => (child instanceof Node ? child : String(child));

/** What may be wider than the page, in a box of its own that the keyboard reaches. @param {string} label @param {...any} children */
export const scrolled = (label, ...children) =>
  h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": label }, ...children);

/** A name of a question or a column as people read it. @param {string} name */
export const spoken = (name) => name.replaceAll("_", " ");

/** @param {string} id @returns {any} */
export const byId = (id) => document.getElementById(id);

/** Text by language, in one of the languages asked for or the first there is. @param {any} text @param {...string} languages */
export function inLanguage(text, ...languages) {
  if (typeof text !== "object" || text === null) return String(text ?? "");
  const found = [...languages, "en"].find((language) => text[language]);
  return found ? text[found] : (Object.values(text)[0] ?? "");
}
