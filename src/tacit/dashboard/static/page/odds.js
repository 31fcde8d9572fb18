/** How sure a report can make somebody of an answer: the one figure that all pages show. The twin of `surest` in privacy.py. */

const WORD = 2 ** 64;

/** From here on the noise is called weak: a report may turn 50 % into 95 %. */
const WEAK = 19;

/**
 * How sure somebody can become at most who took an answer for a coin toss, 50 %, in percent. With the likelihood ratio
 * R, Bayes' rule gives R/(1 + R). Rounded up, so that "at most" is true, and never to 100.
 * @param {number} ratio
 * @returns {{value: number, digits: number}} with so many digits after the point, as `speaker` and `plain` write it
 */
export function surest(ratio) {
  const doubt = 100 / (1 + ratio);
  let digits = 1;
  while (doubt * 10 ** digits < 1) digits += 1;
  const left = Math.floor(doubt * 10 ** digits);
  return { value: (10 ** (digits + 2) - left) / 10 ** digits, digits };
}

/** In English. @param {{value: number, digits: number}} number */
export const plain = ({ value, digits }) => value.toFixed(digits);

/** The largest likelihood ratio that a mechanism allows. @param {{odds: bigint}} mechanism */
export const ratioOf = ({ odds }) => Number(odds) / WORD;

/** Whether this ratio leaves so little doubt that a page has to say it. @param {number} ratio */
export const isWeak = (ratio) => ratio >= WEAK;

/** A sentence more where the noise is weak. @param {number} ratio @param {(key: string) => string} say */
export const weakness = (ratio, say) => (isWeak(ratio) ? ` ${say("weak")}` : "");
