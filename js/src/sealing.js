/**
 * Reports of shuffled collections: sealed for the session that takes them, sent to its shufflers, sealed again after an
 * abort, looked up afterwards. The twin of `tacit.client.sealed`; pages load it for shuffled documents alone.
 *
 * @typedef {import("./ledger.js").Entry} Entry
 * @typedef {NonNullable<Entry["sealed"]>} Sealed
 * @typedef {import("./client.js").Respondent} Host whose network, coins, clock and ledger are used
 * @typedef {(entry: Entry, attempt: () => Promise<{change?: Partial<Entry>, after: number, reason?: string}>) => Promise<any>} Persist
 */

import { InvalidSpec, TacitError } from "./errors.js";
import { checkBrowser } from "./hpke.js";
import { isProof, rosterOf } from "./inclusion.js";
import { REQUEST_TYPE, binaryRequest, encapsulate, statusOf } from "./ohttp.js";
import { HELD, receiptOf } from "./ledger.js";
import { wordOf } from "./report_words.js";
import { checkMode, checkSession, honestOf } from "./session.js";
import { concat, hex, sha256, unhex, utf8 } from "./sha256.js";
import { sealUpload } from "./upload.js";

const ACCEPTED = 202;

/**
 * The verified session that takes reports of a collection now; nothing may be drawn where there is none.
 * @param {Host} host
 * @param {import("./document.js").Collection} collection
 * @param {string} base
 */
export async function sessionOf(host, collection, base) {
  if (!collection.shuffle) throw new InvalidSpec(`collection ${collection.id}: it is not shuffled, so it has no sessions`);
  checkMode(collection);
  await checkBrowser();
  const published = await jsonAt(host, `${base}/c/${collection.id}/session.json`);
  if (published === undefined) throw new TacitError(`collection ${collection.id}: no session takes reports now; try again later`);
  const session = await checkSession(collection, published);
  if (1000 * session.closes > host.now()) return session;
  throw new TacitError(`collection ${collection.id}: the last session has closed; try again later`);
}

/**
 * A report, sealed for a session that was verified, as the ledger keeps it: every attempt sends these bytes.
 * @param {Host} host
 * @param {import("./session.js").Session} session
 * @param {string} report in hexadecimal
 * @returns {Promise<Sealed>}
 */
export async function sealReport({ coins }, session, report) {
  const { shufflers, relay, words } = session;
  const { slot, parts } = await sealUpload(session, wordOf(words, unhex(report), coins), coins);
  return {
    ...{ session: session.id, slot: hex(slot), relay: relay?.url ?? "" },
    parts: parts.map((part, i) => ({ url: shufflers[i].url, key: shufflers[i].seal_key, body: hex(concat(slot, part)) })),
    shufflers: shufflers.map(({ url }) => url),
    // If t shufflers of r have to be honest, so many reach at least one who is.
    enough: shufflers.length - honestOf(session) + 1,
    ...{ proof: null, took_part: false },
  };
}

/** What admits a sealed report where invitations are asked for. @param {string} invitation */
const tokenOf = (invitation) => (invitation ? sha256(utf8(`invitation:${invitation}`)) : new Uint8Array());

/**
 * The requests of a report that goes straight to its shufflers; none for one that goes through a relay, whose requests
 * are made afresh at every attempt.
 * @param {Entry} entry
 * @returns {[string, RequestInit][]}
 */
export function uploadsOf({ sealed, invitation }) {
  return (sealed && !sealed.relay ? sealed.parts : []).map(({ url, body }) => [
    `${url}/s/${sealed?.session}/uploads`,
    upload(concat(unhex(body), tokenOf(invitation))),
  ]);
}

/** Plain text needs no question in advance from a page of another origin. @param {Uint8Array} body @param {string} [type] */
const upload = (body, type = "text/plain") => ({ method: "POST", headers: { "Content-Type": type }, body });

/**
 * Send one part; the reply of a shuffler is the same for every upload, and tells nobody what became of it.
 * @param {Host} host
 * @param {Sealed} sealed
 * @param {number} i
 * @param {string} invitation
 * @returns {Promise<{fault: string, after: number}>}
 */
async function sendPart(host, sealed, i, invitation) {
  const { url, key, body } = sealed.parts[i];
  const [path, content] = [`/s/${sealed.session}/uploads`, concat(unhex(body), tokenOf(invitation))];
  if (!sealed.relay) {
    const { status, after } = await host.request(url + path, upload(content));
    return { fault: faultOf(status), after };
  }
  // The same for every shuffler and client, so that sizes tell nothing but the mode.
  const inside = binaryRequest("POST", `https://shuffler${path}`, {}, content);
  // The key that the session names, by its first byte: all respondents use the same, so that it never becomes a name.
  // In an envelope of its own at every attempt, because a gateway may drop what it has seen; inside it is the same.
  const { sent, open } = await encapsulate(unhex(key)[0], unhex(key), inside, host.coins);
  const { status, after, bytes } = await host.request(`${sealed.relay}/r/${i + 1}`, upload(sent, REQUEST_TYPE));
  if (status < 200 || status > 299) return { fault: faultOf(status), after };
  const fault = await open(bytes).then((answer) => faultOf(statusOf(answer)), () => "the relay did not bring its answer");
  return { fault, after };
}

/** @param {number} status */
const faultOf = (status) => (status === ACCEPTED ? "" : status ? `status ${status}` : "no reply");

/**
 * What sends the parts of a sealed report, each until its shuffler has it; call it again for those that failed.
 * @param {Host} host
 * @param {Entry} entry
 */
function sender(host, { sealed, invitation }) {
  const left = new Set(sealed?.parts.keys());
  return async () => {
    /** @type {string[]} */
    const faults = [];
    let wait = 0;
    for (const i of left) {
      const { fault, after } = await sendPart(host, /** @type {Sealed} */ (sealed), i, invitation);
      if (fault) faults.push(`shuffler_${i + 1}: ${fault}`);
      else left.delete(i);
      wait = Math.max(wait, after);
    }
    const reason = faults.join("; ");
    return { change: reason ? undefined : { state: /** @type {const} */ ("sent"), reason }, after: wait, reason };
  };
}

/** The document of an entry. @param {Host} host @param {Entry} entry */
const documentOf = (host, { base, collection }) => host.open(`${base}/c/${collection}`);

/**
 * Seal a report for the session that takes reports now, and keep the sealed bytes before any of them is sent.
 * @param {Host} host
 * @param {Entry} entry
 * @param {(session: import("./session.js").Session) => Promise<boolean>} [agrees] whether it is to be this session
 * @returns {Promise<Entry>}
 */
async function keepSealed(host, entry, agrees = async () => true) {
  const session = await sessionOf(host, await documentOf(host, entry), entry.base);
  if (!(await agrees(session))) return entry;
  return host.store.seal(entry.batch, entry.sealed?.session, await sealReport(host, session, entry.report));
}

/**
 * Seal a report if it is not, and send its parts. What it waits for is noted as its reason; the invitation stays, as it
 * admits to the next session too, should this one be aborted.
 * @param {Host} host
 * @param {Entry} entry
 * @param {Persist} persist how often, and with which waits, an attempt is repeated
 */
export async function sendSealed(host, entry, persist) {
  try {
    const sealed = entry.sealed ? entry : await keepSealed(host, entry);
    return await persist(sealed, sender(host, sealed));
  } catch (error) {
    // Nothing is wrong with the report: it waits for a session, a page or a browser in which it can be sealed.
    if (!(error instanceof TacitError)) throw error;
    return receiptOf(host.store.settle(entry.batch, { reason: error.message }));
  }
}

/**
 * Seal reports for the next session whose own was aborted; they are pending then.
 * @param {Host} host
 * @param {Entry[]} entries
 */
export async function sealAgain(host, entries) {
  for (const entry of entries) {
    const before = /** @type {Sealed} */ (entry.sealed);
    const agrees = async (/** @type {{id: string}} */ { id }) => id !== before.session && isAborted(host, before);
    // Whatever is wrong with one collection must not keep the others from being sent.
    if (!before.took_part) await keepSealed(host, entry, agrees).catch(() => undefined);
  }
}

/** JSON at an address; undefined where there is none. @param {Host} host @param {string} url */
async function jsonAt(host, url) {
  const { status, bytes } = await host.request(url);
  try {
    return status === 200 ? JSON.parse(new TextDecoder().decode(bytes)) : undefined;
  } catch {
    return undefined;
  }
}

/**
 * Whether so many shufflers say that they gave the session up that at least one honest one does. The collector alone
 * is not believed: it could open the reports and then ask for the same ones again, among others.
 * @param {Host} host
 * @param {Sealed} sealed
 */
async function isAborted(host, { shufflers, session, enough }) {
  const states = await Promise.all(shufflers.map((url) => jsonAt(host, `${url}/s/${session}/status`)));
  // A shuffler that had sent its last rows cannot know whether the collector put them together before it gave up.
  return states.filter((status) => status?.state === "ABORTED" && !status.had_sent).length >= enough;
}

/**
 * What is known about the part that a report took: "waiting" (slots are not agreed yet), "shown" (a shuffler shows the
 * slot, the signatures of all are not published yet), "included", "missing" (no shuffler showed it) or "aborted"; and
 * how many took part. The proof of the slot is kept, as shufflers erase theirs.
 * @param {Host} host
 * @param {string} batch
 * @returns {Promise<{state: "waiting" | "shown" | "included" | "missing" | "aborted", respondents: number}>}
 */
export async function check(host, batch) {
  const entry = host.store.read().entries.find((one) => one.batch === batch);
  if (!entry?.sealed || entry.state === HELD) throw new InvalidSpec("ledger: no report with this batch was sealed and sent");
  await checkBrowser();
  const sealed = { ...entry.sealed, proof: entry.sealed.proof ?? (await firstProof(host, entry.sealed)) };
  const found = await lookUp(host, await documentOf(host, entry), { ...entry, sealed });
  // Once it was certain, it stays so: a report that took part is never sealed again.
  sealed.took_part ||= found.state === "included";
  host.store.settle(batch, { sealed, invitation: sealed.took_part ? "" : entry.invitation });
  return found;
}

/** The proof of any shuffler. @param {Host} host @param {Sealed} sealed */
async function firstProof(host, { shufflers, session, slot }) {
  const proofs = await Promise.all(shufflers.map((url) => jsonAt(host, `${url}/s/${session}/proof/${slot}`)));
  return proofs.find((proof) => isProof(proof, slot)) ?? null;
}

/**
 * @param {Host} host
 * @param {import("./document.js").Collection} collection
 * @param {Entry & {sealed: Sealed}} entry
 * @returns {ReturnType<typeof check>}
 */
async function lookUp(host, collection, { base, sealed }) {
  const { session, proof } = sealed;
  const published = await jsonAt(host, `${base}/c/${collection.id}/transcript.json`);
  const roster = published === undefined ? undefined : await rosterOf(collection, published);
  if (roster?.session === session) {
    const shown = proof?.root === roster.root && proof.n === roster.n;
    return { state: shown ? "included" : "missing", respondents: roster.n };
  }
  if (await isAborted(host, sealed)) return { state: "aborted", respondents: 0 };
  return { state: proof ? "shown" : "waiting", respondents: proof?.n ?? 0 };
}
