/** Reading the golden vectors; not a test itself. */

import { webcrypto } from "node:crypto";
import { existsSync, readFileSync, readdirSync, statSync } from "node:fs";

// Node 18 has no global entropy source; browsers and later versions do.
globalThis.crypto ??= /** @type {Crypto} */ (webcrypto);

const ROOT = new URL("../../spec/vectors/", import.meta.url);

/** @param {string} path below spec/vectors */
export const read = (path) => JSON.parse(readFileSync(new URL(path, ROOT), "utf8"));

/** Every file of every kind: [kind, name]. */
export function all() {
  const kinds = existsSync(ROOT) ? readdirSync(ROOT).filter((name) => statSync(new URL(name, ROOT)).isDirectory()) : [];
  return kinds.flatMap((kind) =>
    readdirSync(new URL(`${kind}/`, ROOT))
      .filter((name) => name.endsWith(".json"))
      .map((name) => [kind, name]),
  );
}

/** A private value from its JSON: {"integer": digits} stands for integers from 2^53 on. */
export function decode(value) {
  if (Array.isArray(value)) return value.map(decode);
  if (typeof value !== "object" || value === null) return value;
  if (Object.keys(value).join() === "integer") return BigInt(value.integer);
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, decode(item)]));
}

/** The batch of one report that was uploaded, in either form. @param {Uint8Array | string} body */
export function uploaded(body) {
  const bytes = Buffer.from(body);
  if (bytes.subarray(0, 4).toString() !== "TCB1") return JSON.parse(bytes.toString());
  const reports = [{ member: bytes.readUInt32LE(52), report: bytes.subarray(60).toString("hex") }];
  if (bytes.readUInt32LE(56) !== 1) throw new Error("a device sends one report");
  return { collection: bytes.subarray(4, 36).toString("hex"), batch: bytes.subarray(36, 52).toString("hex"), reports };
}

/** @param {string} text */
export const unhex = (text) => Uint8Array.from(text.match(/../g) ?? [], (pair) => Number.parseInt(pair, 16));
