/** How likely a report fits the respondent's own answer, and any one other, from what the document says of a mechanism.
 * The figures are for reading; what is drawn is decided by exact integers in the client. */

const WORD = 2 ** 64;

/** The chance that a zero becomes a one, where a one stays with a chance and both are within the odds.
 * @param {number} own @param {number} odds */
const otherOf = (own, odds) => own / (odds * (1 - own) + own);

/** @type {Record<string, (device: any, odds: number) => [number, number]>} */
const KINDS = {
  grr: ({ size }, odds) => [odds / (odds + size - 1), 1 / (odds + size - 1)],
  sue: (_, odds) => [Math.sqrt(odds) / (1 + Math.sqrt(odds)), 1 / (1 + Math.sqrt(odds))],
  oue: (_, odds) => [1 / 2, otherOf(1 / 2, odds)],
  rue: ({ size }, odds) => {
    const own = 1 / (1 + Math.sqrt((size - 1 + 1 / odds) / (size - 1 + odds)));
    return [own, otherOf(own, odds)];
  },
  the: ({ theta }, odds) => [1 - odds ** ((theta - 1) / 2) / 2, odds ** (-theta / 2) / 2],
  ss: ({ size, subset }, odds) => chosen(size, subset, odds),
  cbr: (device, odds) => chosen(codesOf(device), blockOf(device), odds),
};

/** (q^t - 1)/(q - 1). @param {number} q @param {number} t */
const points = (q, t) => (q ** t - 1) / (q - 1);

/** How many codes a design has. @param {any} device @returns {number} */
export const codesOf = ({ family, order, dimension }) => (family === "paley" ? order : points(order, dimension));

/** How many answers a code fits. @param {any} device @returns {number} */
const blockOf = ({ family, order, dimension }) => (family === "paley" ? (order - 1) / 2 : points(order, dimension - 1));

/** k of m are chosen, among them the own one with a chance. @param {number} m @param {number} k @param {number} odds
 * @returns {[number, number]} */
function chosen(m, k, odds) {
  const own = (k * odds) / (k * odds + m - k);
  return [own, (k - own) / (m - 1)];
}

/** How many codes there are for every one that an answer leads to without noise; a code fits a share of 1/c of all answers.
 * @type {Record<string, (device: any) => number>} */
const CODES = {
  blh: ({ g }) => g,
  olh: ({ g }) => g,
  flh: ({ g }) => g,
  rmp: ({ g }) => g,
  hrr: () => 2,
  hrr_signed: () => 2,
  hrr_t: ({ coefficients }) => 2 ** coefficients,
  hrr_subspace: ({ coefficients }) => 2 ** coefficients,
  abr: ({ modulus, block }) => modulus / block,
};

const MANY = 4;

/** Which words say how many answers a scrambled code fits on average; of some kinds this page does not know.
 * @param {any} device @returns {"saysCode" | "saysCodeMany" | "saysCodeFew" | "saysCodeOne"} */
export function codeWords(device) {
  const fitting = Number(device?.size) / (CODES[device?.kind]?.(device) ?? NaN);
  if (!(fitting >= 0)) return "saysCode";
  if (fitting < 1) return "saysCodeOne";
  return fitting < MANY ? "saysCodeFew" : "saysCodeMany";
}

/** What is nearer to nothing or to certainty, in percent, is said by this bound. */
const LEAST = 1e-6;
const MOST_DIGITS = 12;

/** Digits after the point that leave two significant ones; zero needs none. @param {number} size */
const digitsFor = (size) => (size > 0 ? Math.min(Math.max(1 - Math.floor(Math.log10(size)), 0), MOST_DIGITS) : 0);

/** A figure in percent, as `speaker` says it: never rounded to 0 or 100. @param {number} share @param {number} apart how far the
 * share that is said beside it is off @returns {{value: number, digits: number, bound?: string}} */
function percent(share, apart) {
  const value = 100 * share;
  if (value < LEAST) return { value: LEAST, digits: 6, bound: "lessThan" };
  if (100 - value < LEAST) return { value: 100 - LEAST, digits: 6, bound: "moreThan" };
  return { value, digits: Math.max(digitsFor(Math.min(value, 100 - value)), digitsFor(100 * apart)) };
}

/**
 * In percent, with so many digits that the two differ; undefined where it is not so simple.
 * @param {any} device
 * @returns {Record<"own" | "other", {value: number, digits: number, bound?: string}> | undefined}
 */
export function chances(device) {
  const [own, other] = KINDS[device.kind]?.(device, Number(device.odds) / WORD) ?? [];
  if (own === undefined || other === undefined || !Number.isFinite(own) || !Number.isFinite(other)) return undefined;
  const apart = Math.abs(own - other);
  return { own: percent(own, apart), other: percent(other, apart) };
}
