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

/** @param {number} share */
const percent = (share) => (100 * share).toFixed(share < 0.1 ? 1 : 0);

/**
 * In percent; undefined where it is not so simple.
 * @param {any} device
 * @returns {{own: string, other: string} | undefined}
 */
export function chances(device) {
  const [own, other] = KINDS[device.kind]?.(device, Number(device.odds) / WORD) ?? [];
  if (!Number.isFinite(own) || !Number.isFinite(other)) return undefined;
  return { own: percent(Number(own)), other: percent(Number(other)) };
}
