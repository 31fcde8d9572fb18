/** What is handed out of a collection: its link, the snippet for another site, and a link to its answers. */

import { call, copyFrom, notify } from "../page/api.js";
import { byId, h, inLanguage } from "../page/dom.js";
import { sites } from "./sites.js";

const HERE = ["127.0.0.1", "localhost", "[::1]"];
const ONLY_HERE =
  "This address works on this machine alone. For other people give the collector a public address with HTTPS " +
  "(docs/howto/deploy.md) before you publish or print anything.";

const BY_INVITATION =
  "Everybody needs an invitation, which works once: make links under Invitations below, and hand out those. " +
  "Reports from the plain link or its QR code are not taken in.";

/** @param {string} name @param {string} value @param {string} id */
function copyField(name, value, id) {
  const copy = () => copyFrom(byId(id));
  return h(
    "div",
    { class: "field" },
    h("label", { for: id }, name),
    h(
      "div",
      { class: "copy" },
      h("input", { id, readonly: true, value }),
      h("button", { type: "button", onclick: copy, "aria-label": `Copy ${name.toLowerCase()}` }, "Copy"),
    ),
  );
}

/** A frame for another site, which grows with the survey. @param {string} address @param {any} title */
function snippet(address, title) {
  const plain = inLanguage(title).replaceAll("&", "&amp;").replaceAll('"', "&quot;");
  const script = new URL("/js/embed.js", address).href;
  return `<iframe src="${address}" title="${plain}" width="100%" height="720" style="border:0"></iframe><script src="${script}" async></script>`;
}

/**
 * The card "Ask people".
 * @param {{id: string, address: string, document_: any, admin: boolean}} given
 */
export function askPeople({ id, address, document_, admin }) {
  return h(
    "section",
    { class: "card", id: "share", "aria-labelledby": "share-title" },
    h("h2", { id: "share-title" }, "Ask people"),
    document_.invitations && h("p", { class: "hint-box", id: "by-invitation" }, BY_INVITATION),
    HERE.includes(new URL(address).hostname) && h("p", { class: "hint-box", id: "only-here" }, ONLY_HERE),
    h(
      "div",
      { class: "share-grid" },
      h("img", { src: `/c/${id}/qr.svg`, alt: "QR code with the address of the survey", width: 144, height: 144 }),
      h(
        "div",
        { class: "stack" },
        copyField("Link", address, "link"),
        copyField("Embed", snippet(address, document_.title), "embed"),
        sites(id, document_.origins, admin),
        document_.plan && h("p", { class: "soft" }, "The link leads to whichever round is open."),
      ),
    ),
    h(
      "div",
      { class: "row" },
      h("a", { class: "button", href: address }, "Open the survey"),
      h("a", { class: "button", href: `/c/${id}/privacy` }, "Privacy page"),
    ),
  );
}

/**
 * The card that makes a link to the answers, for somebody without a token.
 * @param {{id: string, address: string, admin: boolean}} given
 */
export function showOthers({ id, address, admin }) {
  if (!admin) return null;
  const made = h("div", { role: "status" });
  const make = async () => {
    try {
      const wanted = { label: "link to the answers", scope: "reader", collection: id, days: 0 };
      const { token } = await call("POST", "tokens", wanted);
      const site = address.slice(0, -`/c/${id}`.length);
      made.replaceChildren(copyField("Link to the answers, shown this once", `${site}/dashboard/collections/${id}?share=${token}`, "answers-link"));
      byId("answers-link").select();
    } catch (error) {
      notify(/** @type {Error} */ (error).message);
    }
  };
  return h(
    "section",
    { class: "card", "aria-labelledby": "others-title" },
    h("h2", { id: "others-title" }, "Show the answers to others"),
    h("p", { class: "soft" }, "Whoever has the link reads the answers of this survey, without signing in, and nothing else. It ends when you revoke it under Tokens."),
    made,
    h("div", {}, h("button", { type: "button", id: "share-answers", onclick: make }, "Make a link")),
  );
}
