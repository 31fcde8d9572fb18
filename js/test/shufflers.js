/** Shufflers, a relay and a collector in miniature, with real keys, for tests of clients; not a test itself. */

import "./vectors.js";
import { createServer } from "node:http";

import { canonical, digest } from "../src/numbers/canonical.js";
import { SealingContext, exchange, expand, extract, sharedSecret } from "../src/sealed/hpke.js";
import { integerOf } from "../src/client/report_words.js";
import { concat, hex, unhex, utf8 } from "../src/numbers/sha256.js";
import { read } from "./vectors.js";

const { subtle } = globalThis.crypto;
const [{ document: model }] = read("sessions.json").good;
const CLOSES = 4e9;

/** @param {string} algorithm @param {KeyUsage[]} usages */
async function pair(algorithm, usages) {
  const { privateKey, publicKey } = /** @type {CryptoKeyPair} */ (await subtle.generateKey(algorithm, true, usages));
  return { privateKey, publicKey: new Uint8Array(await subtle.exportKey("raw", publicKey)) };
}

/** @param {any} keys @param {Uint8Array} enc @param {Uint8Array} info */
async function opening(keys, enc, info) {
  const shared = sharedSecret(await exchange(keys.privateKey, enc), enc, keys.publicKey);
  return new SealingContext(shared, info, enc);
}

/** @param {Uint8Array} key @param {Uint8Array} iv @param {Uint8Array} ciphertext */
async function decrypt(key, iv, ciphertext) {
  const cipher = await subtle.importKey("raw", key, "AES-GCM", false, ["decrypt"]);
  return new Uint8Array(await subtle.decrypt({ name: "AES-GCM", iv }, cipher, ciphertext));
}

/** What was sealed for a key. @param {any} keys @param {Uint8Array} sealed @param {Uint8Array} info */
async function unseal(keys, sealed, info) {
  const { key, baseNonce } = await opening(keys, sealed.slice(0, 32), info);
  return decrypt(key, baseNonce, sealed.slice(32));
}

/** A collector (party 0) and its shufflers. */
export class Shuffle {
  /** Requests as they arrived: [method, path, headers, body]. @type {[string, string, any, Uint8Array][]} */
  requests = [];
  /** Numbers of shufflers that do not answer. */
  dead = new Set();
  /** Numbers of shufflers that had sent their last rows when they gave up. */
  late = new Set();
  /** States that shufflers state, by number; COLLECTING where there is none. @type {Map<number, string>} */
  states = new Map();
  /** Answers in the place of what would be there, by path. @type {Map<string, [number, any]>} */
  instead = new Map();

  /** @param {any} terms changes of the terms @param {any} document changes of the document */
  static async start(terms = {}, document = {}) {
    const made = new Shuffle();
    made.server = createServer((request, response) => made.#serve(request, response));
    await new Promise((ready) => made.server.listen(0, "127.0.0.1", () => ready(undefined)));
    made.base = `http://127.0.0.1:${made.server.address().port}`;
    const count = { relay: 1, ss: 3 }[terms.mode] ?? 3;
    made.identities = await Promise.all(Array.from({ length: count + 1 }, () => pair("Ed25519", ["sign", "verify"])));
    made.keys = await Promise.all(Array.from({ length: count + 1 }, () => pair("X25519", ["deriveBits"])));
    const who = (i, name) => ({ name, identity: hex(made.identities[i].publicKey) });
    const shufflers = made.keys.slice(1).map((_, i) => ({ ...who(i + 1, `Shuffler ${i + 1}`), url: `${made.base}/s_${i + 1}` }));
    const relay = terms.relay && { name: "Relay", url: `${made.base}/relay` };
    made.document = { ...model, ...document, shuffle: { ...model.shuffle, collector: who(0, "Collector"), shufflers, ...terms, relay: relay ?? null } };
    made.id = digest(made.document);
    made.address = `${made.base}/c/${made.id}`;
    await made.convene();
    return made;
  }

  stop() {
    this.server.closeAllConnections();
    return new Promise((closed) => this.server.close(closed));
  }

  /** Publish a session, signed by all; another one every time. @param {any} changes */
  async convene(changes = {}) {
    const { shuffle: terms, mechanism, retention_days: days } = this.document;
    this.keys = await Promise.all(this.keys.map(() => pair("X25519", ["deriveBits"])));
    const party = ({ name, identity, url = this.base }, i) => ({ operator: name, identity, url, seal_key: hex(this.keys[i].publicKey) });
    const numbers = { n_min: terms.minimum, n_max: terms.maximum, fakes: { osh: 60, "osh-z": 90 }[terms.mode] ?? 90 / terms.shufflers.length };
    const certificate = {
      ...{ accountant: "blanket", version: 1, kind: mechanism.kind, digest: digest(mechanism), local_epsilon: "1", n_min: terms.minimum },
      ...{ fakes: 20, delta: "0.0000000025", epsilon: "0.05", epsilon_others: "0.9", hashing: "", fragmented: false, neighbours: "replacement" },
    };
    this.session = {
      ...{ collection: this.id, mode: terms.mode, ...numbers, spot_checks: terms.spot_checks, words: { outcomes: 3, seeded: false } },
      ...{ collector: party(terms.collector, 0), shufflers: terms.shufflers.map((one, i) => party(one, i + 1)) },
      ...{ closes: CLOSES, retention_seconds: 86400 * days, phase_seconds: 600, certificate, claims_amplification: true },
      ...{ together: [], relay: terms.relay && { operator: "Relay", url: terms.relay.url }, dgk: null, ...changes },
    };
    this.sessionId = digest(this.session);
    this.published = { session: this.session, signatures: await this.signed("session", this.session) };
  }

  /** @param {string} label @param {any} document */
  async signed(label, document) {
    const bytes = utf8(`tacit ${label}\0${canonical(document)}`);
    const each = this.identities.map(async ({ privateKey }, i) => ({
      by: i ? `shuffler_${i}` : "collector",
      signature: hex(new Uint8Array(await subtle.sign("Ed25519", privateKey, bytes))),
    }));
    return Promise.all(each);
  }

  /** How a session stands, in a shuffler's words. @param {number} number @param {string} session @param {number} [by] who signs */
  async status(number, session, by = number) {
    const statement = { session, state: this.states.get(number) ?? "COLLECTING", had_sent: this.late.has(number) };
    return { ...statement, signature: (await this.signed("status", statement))[by].signature };
  }

  /** The bodies that a shuffler was sent, whichever way. @param {number} number */
  bodies(number) {
    return this.requests.filter(([method, path]) => method === "POST" && path === `/s_${number}/s/${this.sessionId}/uploads`).map(([, , , body]) => body);
  }

  /** The word of the upload that all shufflers have, opened and joined as they and the collector would. */
  async word() {
    const session = unhex(this.sessionId);
    const info = (purpose, ...rest) => concat(utf8(`tacit shuffle\0${purpose}\0`), session, ...rest);
    const chain = ["relay", "ss"].includes(this.session.mode);
    const bodies = this.session.shufflers.slice(0, chain ? 1 : undefined).map((_, i) => this.bodies(i + 1)[0]);
    const opened = await Promise.all(bodies.map((body, i) => {
      const [slot, part] = [body.slice(0, 16), body.slice(16)];
      return unseal(this.keys[i + 1], part, info(chain ? "hop" : "share", Uint8Array.of(i + 1), ...(chain ? [] : [slot])));
    }));
    let row = opened.reduce((sum, share) => sum.map((byte, i) => byte ^ share[i]));
    // Bytes behind a sealed word are shares of a sum.
    const beside = this.session.mode === "osh-z" ? opened.reduce((sum, share) => sum + integerOf(share.slice(56)), 0n) : 0n;
    if (beside) row = row.slice(0, 56);
    for (let hop = 2; chain && hop <= this.session.shufflers.length; hop += 1) row = await unseal(this.keys[hop], row, info("hop", Uint8Array.of(hop)));
    return BigInt.asUintN(64, beside + integerOf(await unseal(this.keys[0], row, info("word"))));
  }

  /** @param {import("node:http").IncomingMessage} request @param {import("node:http").ServerResponse} response */
  async #serve(request, response) {
    const chunks = [];
    for await (const chunk of request) chunks.push(chunk);
    const body = new Uint8Array(Buffer.concat(chunks));
    const [path, method] = [/** @type {string} */ (request.url), /** @type {string} */ (request.method)];
    this.requests.push([method, path, request.headers, body]);
    const relayed = /^\/relay\/r\/(\d)$/.exec(path);
    const [, number] = /^\/s_(\d)/.exec(path) ?? relayed ?? [];
    if (this.dead.has(Number(number))) return void response.destroy();
    if (path === "/relay/r") return void (await this.#relay(body, response));
    if (relayed) return void response.writeHead(200).end(await this.#gateway(Number(number), body));
    const [status, reply] = this.instead.get(path) ?? (await this.#reply(method, path, Number(number)));
    response.writeHead(status).end(reply === undefined ? undefined : JSON.stringify(reply));
  }

  /** @param {string} method @param {string} path @param {number} number @returns {Promise<[number, any]>} */
  async #reply(method, path, number) {
    if (method === "POST") return path.endsWith("/uploads") ? [202, undefined] : [500, undefined];
    if (path.endsWith("/document.json")) return [200, this.document];
    if (path.endsWith("/session.json")) return [200, this.published];
    if (path.endsWith("/status")) return [200, await this.status(number, path.split("/").at(-2))];
    return [404, { title: "not found" }];
  }

  /** Pass the parts of an upload on; zeros in the place of what a dead shuffler would answer. @param {Uint8Array} body @param {import("node:http").ServerResponse} response */
  async #relay(body, response) {
    const answers = [];
    for (let [at, number] = [0, 1]; at < body.length; number += 1) {
      const end = at + 2 + ((body[at] << 8) | body[at + 1]);
      answers.push(this.dead.has(number) ? new Uint8Array(96) : await this.#gateway(number, body.slice(at + 2, end)));
      at = end;
    }
    response.writeHead(this.dead.size ? 503 : 200).end(concat(...answers));
  }

  /** Open a request through the relay, hand it to its shuffler, and seal the answer. @param {number} number @param {Uint8Array} body */
  async #gateway(number, body) {
    const [header, enc] = [body.slice(0, 7), body.slice(7, 39)];
    if (header[0] !== this.keys[number].publicKey[0]) throw new Error("another key");
    const context = await opening(this.keys[number], enc, concat(utf8("message/bhttp request\0"), header));
    const message = await decrypt(context.key, context.baseNonce, body.slice(39));
    const { method, path, content } = requestIn(message);
    this.requests.push([method, `/s_${number}${path}`, { relayed: true }, content]);
    const [status, reply] = method === "POST" ? [202, undefined] : (this.instead.get(`/s_${number}${path}`) ?? (await this.#reply(method, path, number)));
    const text = reply === undefined ? new Uint8Array() : utf8(JSON.stringify(reply));
    const plain = concat(Uint8Array.of(1, 0x40 | (status >> 8), status & 255, 0, 0x40 | (text.length >> 8), text.length & 255), text);
    const size = method === "POST" ? 64 : 4096;
    const nonce = new Uint8Array(16).fill(7);
    const inner = extract(concat(enc, nonce), context.export(utf8("message/bhttp response"), 16));
    const cipher = await subtle.importKey("raw", expand(inner, utf8("key"), 16), "AES-GCM", false, ["encrypt"]);
    const sealed = concat(plain, new Uint8Array(size - plain.length));
    const answer = await subtle.encrypt({ name: "AES-GCM", iv: expand(inner, utf8("nonce"), 12) }, cipher, sealed);
    return concat(nonce, new Uint8Array(answer));
  }
}

/** A binary request without fields, for the authority that all requests name. @param {Uint8Array} message */
function requestIn(message) {
  let at = 1;
  const piece = () => {
    const long = message[at] >> 6;
    const size = long ? ((message[at] & 63) << 8) | message[at + 1] : message[at];
    const start = at + 1 + long;
    at = start + size;
    return message.slice(start, at);
  };
  const [method, scheme, authority, path] = Array.from({ length: 4 }, () => Buffer.from(piece()).toString());
  const [fields, content] = [piece(), piece()];
  if (`${scheme} ${authority}` !== "https shuffler" || fields.length) throw new Error("another request");
  return { method, path, content };
}
