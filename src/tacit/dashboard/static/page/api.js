/** The collector's JSON endpoints, as the signed-in operator or as the holder of a share link. */

import { byId } from "./dom.js";

const share = new URLSearchParams(location.search).get("share");

/** A refusal: what the problem document says. */
export class Refused extends Error {
  /** @param {number} status @param {any} problem */
  constructor(status, problem) {
    super(problem?.detail || problem?.title || `The collector answered with ${status || "nothing"}.`);
    this.status = status;
    this.problem = problem;
  }
}

/** An address below the API, with the share link's token where there is one. @param {string} path */
export function address(path) {
  if (!share) return `/api/v1/${path}`;
  return `/api/v1/${path}${path.includes("?") ? "&" : "?"}share=${encodeURIComponent(share)}`;
}

/**
 * Call an endpoint.
 * @param {string} method
 * @param {string} path
 * @param {any} [body]
 * @param {AbortSignal} [signal]
 * @returns {Promise<any>}
 */
export async function call(method, path, body, signal) {
  const headers = {
    ...(method !== "GET" && { "Tacit-CSRF": "1" }),
    ...(body !== undefined && { "Content-Type": "application/json" }),
  };
  const reply = await fetch(address(path), {
    method,
    headers,
    signal,
    body: body === undefined ? undefined : JSON.stringify(body),
  }).catch(() => null);
  if (!reply) throw new Refused(0, { detail: "The collector cannot be reached. Is it running, and are you online?" });
  if (reply.status === 401 && !share) location.assign(`/dashboard/login?next=${location.pathname}`);
  const content = await reply.json().catch(() => null);
  if (!reply.ok) throw new Refused(reply.status, content);
  return content;
}

let fading = 0;

/** Say something at the bottom of the page for a while. @param {string} words */
export function notify(words) {
  const notice = byId("notice");
  notice.textContent = words;
  clearTimeout(fading);
  fading = setTimeout(() => (notice.textContent = ""), 6000);
}

/** Copy the text of a field; without a clipboard, which plain http has not, the field is selected. @param {any} field */
export async function copyFrom(field) {
  try {
    await navigator.clipboard.writeText(field.value);
    notify("Copied.");
  } catch {
    field.select();
    notify("Press Ctrl or ⌘ and C to copy.");
  }
}

/** Wait for a while, or until somebody looks at the page again. @param {number} wait */
function rest(wait) {
  return new Promise((resume) => {
    const again = () => {
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", again);
      resume(undefined);
    };
    const timer = setTimeout(again, wait);
    document.addEventListener("visibilitychange", again);
  });
}

/**
 * Call a function now and then again, as long as somebody looks, and at once when somebody looks again.
 * @param {() => Promise<any>} task
 * @param {number} wait
 */
export async function poll(task, wait) {
  for (;;) {
    if (!document.hidden) await task();
    await rest(wait);
  }
}

for (const link of document.querySelectorAll("[data-nav]")) {
  if (link.getAttribute("href") === location.pathname) link.setAttribute("aria-current", "page");
}
