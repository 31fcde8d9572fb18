/**
 * What a respondent's client sends: its word, sealed and split so that no single party can read it (message M1).
 * The twin of `tacit.shuffle.protocol.sealing`. Every upload of a session has the same size.
 */

import { littleEndian, randomBytes } from "../base.js";
import { seal } from "./hpke.js";
import { integerOf } from "../client/report_words.js";
import { concat, unhex, utf8 } from "../numbers/sha256.js";

const [SEALED_BYTES, WORD_BYTES] = [56, 8];

/**
 * What binds sealed bytes to their purpose and session.
 * @param {string} purpose
 * @param {import("./session.js").Session} session
 * @param {...Uint8Array} rest
 */
const infoOf = (purpose, { id }, ...rest) => concat(utf8(`tacit shuffle\0${purpose}\0`), unhex(id), ...rest);

/** @param {import("./session.js").Session} session @param {bigint} word @param {import("../numbers/coins.js").Coins} coins */
const sealWord = (session, word, coins) =>
  seal(unhex(session.collector.seal_key), littleEndian(word, WORD_BYTES), infoOf("word", session), coins);

/** A word in layers, for the shufflers in order and the collector. @type {typeof sealWord} */
async function sealOnion(session, word, coins) {
  let onion = await sealWord(session, word, coins);
  // From the inside out: the last shuffler's layer is the first around the sealed word.
  for (let hop = session.shufflers.length; hop > 0; hop -= 1) {
    const key = unhex(session.shufflers[hop - 1].seal_key);
    onion = await seal(key, onion, infoOf("hop", session, Uint8Array.of(hop)), coins);
  }
  return onion;
}

/** The row that shufflers hold in shares. @type {typeof sealWord} */
async function rowOf(session, word, coins) {
  if (session.mode === "osh") return sealWord(session, word, coins);
  // A uniform word inside, so that it says nothing about the true one without the sum beside it.
  const random = coins.word();
  return concat(await sealWord(session, random, coins), littleEndian(BigInt.asUintN(64, word - random), WORD_BYTES));
}

/** A row without a share: sealed bytes by exclusive or, a word behind them modulo 2^64. @param {Uint8Array} row @param {Uint8Array} share */
function without(row, share) {
  const [mixed, word] = [row.slice(0, SEALED_BYTES).map((byte, i) => byte ^ share[i]), row.slice(SEALED_BYTES)];
  const left = BigInt.asUintN(64, integerOf(word) - integerOf(share.slice(SEALED_BYTES)));
  return concat(mixed, littleEndian(left, word.length));
}

/**
 * The upload of a word, for a session that was verified. Coins are drawn in the order of the text.
 * @param {import("./session.js").Session} session
 * @param {bigint} word
 * @param {import("../numbers/coins.js").Coins} coins
 * @returns {Promise<{slot: Uint8Array, parts: Uint8Array[]}>} a part for each shuffler, in a chain one
 */
export async function sealUpload(session, word, coins) {
  const { mode, shufflers } = session;
  // Random, not derived from the report or the person: it is all that shufflers know an upload by.
  const slot = randomBytes(coins, 2);
  if (mode === "relay" || mode === "ss") return { slot, parts: [await sealOnion(session, word, coins)] };
  const row = await rowOf(session, word, coins);
  const drawn = shufflers.slice(1).map(() => randomBytes(coins, row.length / WORD_BYTES));
  const parts = [];
  for (const [i, share] of [...drawn, drawn.reduce(without, row)].entries()) {
    const info = infoOf("share", session, Uint8Array.of(i + 1), slot);
    parts.push(await seal(unhex(shufflers[i].seal_key), share, info, coins));
  }
  return { slot, parts };
}
