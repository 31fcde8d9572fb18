/**
 * Reports as 64-bit words, so that every word is a report and nobody can tell a fake by its form.
 * The twin of `tacit.shuffle.protocol.words`.
 */

/** @typedef {{outcomes: number, seeded: boolean}} WordRule how a word becomes a report */

const SEED_BYTES = 4;

/** @param {Uint8Array} bytes @returns {bigint} the little-endian integer */
export const integerOf = (bytes) => bytes.reduceRight((sum, byte) => (sum << 8n) | BigInt(byte), 0n);

/** The rule for the words of a mechanism that fits one. @param {any} mechanism @returns {WordRule} */
export const ruleOf = ({ g, size }) => (g === undefined ? { outcomes: size, seeded: false } : { outcomes: g, seeded: true });

/**
 * A uniform draw among the words that decode to a report; what is drawn depends on the report alone.
 * @param {WordRule} rule
 * @param {Uint8Array} report
 * @param {import("../numbers/coins.js").Coins} coins
 * @returns {bigint}
 */
export function wordOf({ outcomes, seeded }, report, coins) {
  const [head, tail] = seeded ? [report.slice(0, SEED_BYTES), report.slice(SEED_BYTES)] : [new Uint8Array(), report];
  const [code, many] = [integerOf(tail), BigInt(outcomes)];
  // Codes below 2^bits mod outcomes have one word more than the others.
  const count = ((1n << (seeded ? 32n : 64n)) - code - 1n) / many + 1n;
  const shift = BigInt(64 - (count - 1n).toString(2).length);
  for (;;) {
    // Rejected rather than scaled: here an uneven word would tell real reports from fakes.
    const place = coins.word() >> shift;
    if (place < count) return (integerOf(head) << 32n) | (place * many + code);
  }
}
