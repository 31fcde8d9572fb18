/**
 * Reports of shuffled collections: sealed for the session that takes them, sent to its shufflers, sealed again after an
 * abort, looked up afterwards. The twin of `tacit.client.sealed`; pages load it for shuffled documents alone.
 *
 * @typedef {import("../client/ledger.js").Entry} Entry
 * @typedef {NonNullable<Entry["sealed"]>} Sealed
 * @typedef {import("../client/client.js").Respondent} Host whose network, coins, clock and ledger are used
 * @typedef {(entry: Entry, attempt: () => Promise<{change?: Partial<Entry>, after: number, reason?: string}>) => Promise<any>} Persist
 */

import { InvalidSpec, TacitError } from "../errors.js";
import { checkBrowser, twoBytes } from "./hpke.js";
import { isProof, proofIn, rosterOf, saysAborted } from "./inclusion.js";
import { QUESTION_BYTES, REQUEST_TYPE, binaryRequest, contentOf, encapsulate, statusOf } from "./ohttp.js";
import { HELD, receiptOf } from "../client/ledger.js";
import { wordOf } from "../client/report_words.js";
import { checkMode, checkSession, honestOf } from "./session.js";
import { concat, hex, sha256, unhex, utf8 } from "../numbers/sha256.js";
import { sealUpload } from "./upload.js";

const ACCEPTED = 202;
/** Of every response to an upload through a relay. */
const RESPONSE_BYTES = 96;

/**
 * The verified session that takes reports of a collection now; nothing may be drawn where there is none.
 * @param {Host} host
 * @param {import("../documents/document.js").Collection} collection
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
    keys: shufflers.map((one) => one.seal_key),
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

/** @typedef {{fault: string, after: number}} Sent what went wrong, or nothing, and how long to wait before the next attempt */

/**
 * Send one part straight; the reply of a shuffler is the same for every upload, and tells nobody what became of it.
 * @param {Host} host
 * @param {Sealed} sealed
 * @param {Sealed["parts"][0]} part
 * @param {string} invitation
 * @returns {Promise<Sent>}
 */
async function sendPart(host, { session }, { url, body }, invitation) {
  const { status, after } = await host.request(`${url}/s/${session}/uploads`, upload(concat(unhex(body), tokenOf(invitation))));
  return { fault: faultOf(status), after };
}

/** @param {number} status */
const faultOf = (status) => (status === ACCEPTED ? "" : status ? `status ${status}` : "no reply");

/**
 * A request for one shuffler in its envelope. The key is the one that the session names, by its first byte: all
 * respondents use the same, so that it never becomes a name. In an envelope of its own at every attempt, because a
 * gateway may drop what it has seen; inside it is the same.
 * @param {Host} host
 * @param {string} key
 * @param {Uint8Array} inside
 */
const enclose = ({ coins }, key, inside) => encapsulate(unhex(key)[0], unhex(key), inside, coins);

/**
 * Send all parts in one request to the relay; shufflers that have theirs already know it by its slot.
 * @param {Host} host
 * @param {Sealed} sealed
 * @param {string} invitation
 * @returns {Promise<Sent[]>}
 */
async function sendRelayed(host, { relay, session, parts }, invitation) {
  // The same for every shuffler and client, so that sizes tell nothing but the mode.
  const wrapped = await Promise.all(parts.map(({ key, body }) =>
    enclose(host, key, binaryRequest("POST", `https://shuffler/s/${session}/uploads`, {}, concat(unhex(body), tokenOf(invitation))))));
  const { status, after, bytes } = await host.request(`${relay}/r`, upload(concat(...wrapped.flatMap(({ sent }) => [twoBytes(sent.length), sent]))));
  // A relay that missed some shufflers brings the answers of the others all the same.
  const brought = status === 200 || bytes.length === parts.length * RESPONSE_BYTES;
  return Promise.all(wrapped.map(async ({ open }, i) => {
    if (!brought) return { fault: faultOf(status), after };
    const answer = bytes.slice(i * RESPONSE_BYTES, (i + 1) * RESPONSE_BYTES);
    return { fault: await open(answer).then((one) => faultOf(statusOf(one)), () => "the relay did not bring its answer"), after };
  }));
}

/**
 * What sends the parts of a sealed report, each until its shuffler has it; call it again for those that failed.
 * @param {Host} host
 * @param {Entry} entry
 */
function sender(host, { sealed, invitation }) {
  const { parts, relay } = /** @type {Sealed} */ (sealed);
  const left = new Set(parts.keys());
  return async () => {
    /** @type {string[]} */
    const faults = [];
    let wait = 0;
    // Through a relay all parts are sent again: what it sees does not depend on who was away.
    const relayed = relay ? await sendRelayed(host, /** @type {Sealed} */ (sealed), invitation) : undefined;
    for (const i of left) {
      const { fault, after } = relayed?.[i] ?? (await sendPart(host, /** @type {Sealed} */ (sealed), parts[i], invitation));
      if (fault) faults.push(`shuffler_${i + 1}: ${fault}`);
      else if (!relay) left.delete(i);
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
 * @param {(session: import("./session.js").Session, collection: import("../documents/document.js").Collection) => Promise<boolean>} [agrees] whether it is to be this session
 * @returns {Promise<Entry>}
 */
async function keepSealed(host, entry, agrees = async () => true) {
  const collection = await documentOf(host, entry);
  const session = await sessionOf(host, collection, entry.base);
  if (!(await agrees(session, collection))) return entry;
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
    const agrees = async (/** @type {{id: string}} */ { id }, /** @type {import("../documents/document.js").Collection} */ collection) =>
      id !== before.session && isAborted(host, collection, before);
    // Whatever is wrong with one collection must not keep the others from being sent.
    if (!before.took_part) await keepSealed(host, entry, agrees).catch(() => undefined);
  }
}

/** JSON at an address; undefined where there is none. @param {Host} host @param {string} url */
const jsonAt = async (host, url) => jsonIn(await host.request(url));

/** @param {{status: number, bytes: Uint8Array}} reply */
function jsonIn({ status, bytes }) {
  try {
    return status === 200 ? JSON.parse(new TextDecoder().decode(bytes)) : undefined;
  } catch {
    return undefined;
  }
}

/**
 * What all shufflers answer to a question, through the relay where there is one; undefined of those that do not.
 * @param {Host} host
 * @param {Sealed} sealed
 * @param {string} path
 * @returns {Promise<any[]>}
 */
const askAll = (host, sealed, path) =>
  Promise.all(sealed.shufflers.map((url, i) => (sealed.relay ? askThrough(host, sealed, i, path) : jsonAt(host, url + path))));

/** @param {Host} host @param {Sealed} sealed @param {number} i @param {string} path @returns {Promise<any>} */
async function askThrough(host, { relay, keys, parts }, i, path) {
  const key = keys?.[i] ?? parts[i]?.key;
  // Without a key it stays unasked: a straight question would show the address that the relay hid.
  if (!key) return undefined;
  const { sent, open } = await enclose(host, key, binaryRequest("GET", `https://shuffler${path}`, {}, new Uint8Array(), QUESTION_BYTES));
  const { status, bytes } = await host.request(`${relay}/r/${i + 1}`, upload(sent, REQUEST_TYPE));
  const answer = status === 200 ? await open(bytes).catch(() => undefined) : undefined;
  return answer && jsonIn({ status: statusOf(answer), bytes: contentOf(answer) });
}

/**
 * Whether so many shufflers say, each signed, that they gave the session up that at least one honest one does. The
 * collector alone is not believed: it could open the reports and then ask for the same ones again, among others.
 * @param {Host} host
 * @param {import("../documents/document.js").Collection} collection
 * @param {Sealed} sealed
 */
async function isAborted(host, { shuffle: { shufflers } }, sealed) {
  const { session, enough } = sealed;
  const states = await askAll(host, sealed, `/s/${session}/status`);
  const said = await Promise.all(states.map((status, i) => saysAborted(shufflers[i]?.identity, session, status)));
  return said.filter(Boolean).length >= enough;
}

/**
 * What is known about the part that a report took: "waiting" (slots are not agreed yet), "shown" (a shuffler shows the
 * slot, the signatures of all are not published yet), "included", "missing" (the slot is not among those that were
 * signed) or "aborted"; and how many took part. The proof of the slot is kept, as what is published may vanish.
 * @param {Host} host
 * @param {string} batch
 * @returns {Promise<{state: "waiting" | "shown" | "included" | "missing" | "aborted", respondents: number}>}
 */
export async function check(host, batch) {
  const entry = host.store.read().entries.find((one) => one.batch === batch);
  if (!entry?.sealed || entry.state === HELD) throw new InvalidSpec("ledger: no report with this batch was sealed and sent");
  await checkBrowser();
  const { proof, ...found } = await lookUp(host, await documentOf(host, entry), entry.base, entry.sealed);
  const sealed = { ...entry.sealed, proof };
  // Once it was certain, it stays so: a report that took part is never sealed again.
  sealed.took_part ||= found.state === "included";
  host.store.settle(batch, { sealed, invitation: sealed.took_part ? "" : entry.invitation });
  return found;
}

/** The proof of any shuffler. @param {Host} host @param {Sealed} sealed */
async function firstProof(host, sealed) {
  const proofs = await askAll(host, sealed, `/s/${sealed.session}/proof/${sealed.slot}`);
  return proofs.find((proof) => isProof(proof, sealed.slot)) ?? null;
}

/**
 * @param {Host} host
 * @param {import("../documents/document.js").Collection} collection
 * @param {string} base
 * @param {Sealed} sealed
 * @returns {Promise<Awaited<ReturnType<typeof check>> & {proof: Sealed["proof"]}>}
 */
async function lookUp(host, collection, base, sealed) {
  const { session, slot, proof: kept } = sealed;
  const published = await jsonAt(host, `${base}/c/${collection.id}/transcript.json?session=${session}`);
  const roster = published === undefined ? undefined : await rosterOf(collection, published);
  if (roster?.session === session) {
    // A proof that was kept spares the hashes of all others, if it leads to the root that was signed in the end.
    const found = kept?.root === roster.root && kept.n === roster.n ? kept : await proofIn(roster, slot);
    return { state: found ? "included" : "missing", respondents: roster.n, proof: found ?? kept };
  }
  const proof = kept ?? (await firstProof(host, sealed));
  if (await isAborted(host, collection, sealed)) return { state: "aborted", respondents: 0, proof };
  return { state: proof ? "shown" : "waiting", respondents: proof?.n ?? 0, proof };
}
