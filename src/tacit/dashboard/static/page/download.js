/** Files that the collector computes. A browser shows nothing of a download before it begins, so the page says it. */

import { h } from "./dom.js";

const UNREACHED = "The collector cannot be reached. Is it running, and are you online?";

/** Hand a file to the browser. @param {Blob} blob @param {string} name */
function hand(blob, name) {
  const link = h("a", { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

/**
 * Fetch a file and save it under the name that the collector gives; says what happens meanwhile, and why nothing came.
 * @param {string} href
 * @param {any} said an element with the role "status"
 */
export async function save(href, said) {
  said.textContent = "Computing the file…";
  const reply = await fetch(href).catch(() => null);
  if (!reply?.ok) {
    const problem = await reply?.json().catch(() => null);
    said.textContent = problem?.detail ?? (reply ? `The collector answered with ${reply.status}.` : UNREACHED);
    return;
  }
  const name = /filename="([^"]+)"/.exec(reply.headers.get("Content-Disposition") ?? "")?.[1] ?? "answers";
  const blob = await reply.blob().catch(() => null);
  if (blob) hand(blob, name);
  said.textContent = blob ? `Saved as ${name}.` : UNREACHED;
}

/** Where a download says what it does. */
export const saying = () => h("p", { class: "soft", role: "status" });

/**
 * Links to files, and a line that says what becomes of the one that was clicked. An address is asked for at the click.
 * @param {[string, () => string][]} files what each is called, and its address
 */
export function downloads(...files) {
  const said = saying();
  const links = files.map(([name, address]) => {
    const link = h("a", { class: "button", href: address(), download: true }, name);
    link.addEventListener("click", async (/** @type {Event} */ event) => {
      event.preventDefault();
      if (link.getAttribute("aria-busy") === "true") return;
      link.setAttribute("aria-busy", "true");
      await save(address(), said);
      link.removeAttribute("aria-busy");
    });
    return link;
  });
  return h("div", { class: "row" }, ...links, said);
}
