/**
 * Answers golden vectors with the JavaScript client in Node, a JSON object per line; the argument is the client's module.
 */

import { readFileSync } from "node:fs";

const { ReplayCoins, deviceOf } = await import(process.argv[2]);

/** A private value from its JSON: {"integer": digits} stands for integers from 2^53 on. @param {any} value */
function plain(value) {
  if (Array.isArray(value)) return value.map(plain);
  if (typeof value !== "object" || value === null) return value;
  if (Object.keys(value).join() === "integer") return BigInt(value.integer);
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, plain(item)]));
}

/** @param {any} asked @returns {object} the report and what it took, or the name of the error */
function answer({ spec, value, seed = "" }) {
  try {
    const [device, coins] = [deviceOf(spec), new ReplayCoins(Buffer.from(seed, "hex"))];
    const report = value === undefined ? "" : Buffer.from(device.privatizeOne(plain(value), coins)).toString("hex");
    return { report, words: coins.used, digest: device.digest };
  } catch (error) {
    return { error: error.name };
  }
}

for (const line of readFileSync(0, "utf8").split("\n").filter(Boolean)) console.log(JSON.stringify(answer(JSON.parse(line))));
