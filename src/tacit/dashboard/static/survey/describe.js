/** A noisy report in words: what its bytes say, without the answer, which is forgotten by then. */

import { chances, codesOf, codeWords } from "../page/chances.js";
import { ratioOf, surest, weakness } from "../page/odds.js";

const MOST_NAMED = 12;

/**
 * @typedef {(key: string, values?: Record<string, any>) => string} Say
 */

/** @param {string} text @returns {number[]} */
export const bytesOf = (text) => (text.match(/../g) ?? []).map((pair) => Number.parseInt(pair, 16));

/** @param {number[]} bytes @returns {number} a little-endian number */
const numberOf = (bytes) => bytes.reduceRight((sum, byte) => 256 * sum + byte, 0);

/** @param {any} domain @param {number} index @param {Say} say */
function labelOf(domain, index, say) {
  const label = domain.decode(index);
  return typeof label === "boolean" ? say(label ? "yes" : "no") : String(label);
}

/** Which answers a bitmap marks. @param {any} device @param {any} domain @param {number[]} bytes @param {Say} say */
function marks(device, domain, bytes, say) {
  const marked = [];
  for (let i = 0; i < device.size; i += 1) if ((bytes[i >> 3] >> (i & 7)) & 1) marked.push(i);
  const named = marked.slice(0, MOST_NAMED).map((i) => labelOf(domain, i, say));
  if (marked.length > MOST_NAMED) named.push("…");
  const said = { count: marked.length, size: device.size, values: named.join(", "), ...chances(device) };
  return say(marked.length ? "saysMarks" : "saysMarksNone", said);
}

/** One mechanism's bytes in words. @param {any} device @param {any} domain @param {number[]} bytes @param {Say} say */
function words(device, domain, bytes, say) {
  const { kind, family } = device;
  if (family?.mechanisms) {
    const { member, payload } = device.unpack(Uint8Array.from(bytes));
    return drawn(family, domain, { member, bytes: [...payload] }, say);
  }
  if (kind === "padded" || kind === "set_size") return ofSet(device, domain, bytes, say);
  if (kind === "grr") return say("saysValue", { value: labelOf(domain, numberOf(bytes), say), ...chances(device) });
  if (["sue", "oue", "rue", "the", "ss"].includes(kind)) return marks(device, domain, bytes, say);
  if (kind === "cbr") return say("saysBlock", { code: numberOf(bytes) + 1, codes: codesOf(device), ...chances(device) });
  if (kind === "onebit") return say("saysBit", { bit: String(bytes[0]) });
  return say(codeWords(device), { bytes: bytes.length });
}

/** Neighbouring answers in words. @param {any} domain @param {number} first @param {number} last @param {Say} say */
function span(domain, first, last, say) {
  if (domain.kind !== "buckets") {
    const [from, to] = [labelOf(domain, first, say), labelOf(domain, last, say)];
    return first === last ? from : `${from} – ${to}`;
  }
  const below = Number(domain.open_below);
  const [low, high] = [domain.edges[first - below], domain.edges[last - below + 1]];
  if (low === undefined) return say("under", { high });
  return high === undefined ? say("orMore", { low }) : say("from", { low, high });
}

/**
 * A report on a set: which entry was picked, or how many of those in question there are.
 * @param {any} device
 * @param {any} domain
 * @param {number[]} bytes
 * @param {Say} say
 */
function ofSet({ kind, candidates, size, inner, length, most }, domain, bytes, say) {
  const choices = candidates.length || size;
  const entry = (/** @type {number} */ i) => (candidates[i] ?? [i]).map((item) => domain.decode(item)).join(" + ");
  const many = (/** @type {number} */ i) => (i < most ? String(i) : say("orMore", { low: most }));
  const decode = kind === "padded" ? (/** @type {number} */ i) => (i < choices ? entry(i) : say("blank")) : many;
  const asked = [
    candidates.length && kind === "padded" ? say("saysAmong", { choices }) : "",
    kind === "padded" ? say("saysPadded", { length }) : say("saysSize", { choices }),
  ];
  return [...asked, words(inner, { decode }, bytes, say)].filter(Boolean).join(" ");
}

/**
 * One of a family of questions about the same answer: what was drawn, and what is said about it.
 * @param {any} family
 * @param {any} domain
 * @param {{member: number, bytes: number[]}} report
 * @param {Say} say
 * @returns {string}
 */
function drawn(family, domain, { member, bytes }, say) {
  const { kind } = family;
  if (kind === "ticks") return ticked(family, domain, { member, bytes }, say);
  const device = family.mechanisms[member];
  if (kind === "tree" && ["text", "bits"].includes(domain.kind)) {
    return `${beginning(family, domain, member, say)} ${words(device, domain, bytes, say)}`;
  }
  const { stretchOf } = FAMILIES[kind] ?? {};
  if (!stretchOf) return say(codeWords(device), { bytes: bytes.length });
  const attributes = (family.sizes && domain.attributes) || [domain];
  const decode = (/** @type {number} */ node) => stretchOf(family, attributes, member, node, say);
  const single = [family.heights[member]].flat().every((height) => height === 0);
  const asked = attributes.length > 1 ? "saysGrid" : single ? "saysLeaves" : "saysGroups";
  return `${say(asked, { groups: device.size, example: decode(0) })} ${words(device, { decode }, bytes, say)}`;
}

/** Whether one thing of a list is ticked. @param {any} family @param {any} domain @param {{member: number, bytes: number[]}} report
 * @param {Say} say @returns {string} */
function ticked({ size, mechanisms: [device] }, domain, { member, bytes }, say) {
  const said = say(numberOf(bytes) === 1 ? "tickedYes" : "tickedNo");
  return say("saysTick", { item: domain.decode(member), count: size, ticked: said, ...chances(device) });
}

/** The neighbouring answers that a node of a tree stands for. @param {any} family @param {any[]} attributes
 * @param {number} member @param {number} node @param {Say} say @returns {string} */
const nodeOf = ({ fanout, heights, size }, [domain], member, node, say) =>
  stretch(domain, node, fanout ** heights[member], size, say);

/** How many answers a node of every attribute stands for. @param {any} family @param {number} member @returns {number[]} */
const widthsOf = ({ fanouts, heights }, member) =>
  fanouts.map((/** @type {number} */ one, /** @type {number} */ a) => one ** heights[member][a]);

/** The combination of neighbouring answers that a node of a grid stands for; attributes that are not looked at are left
 * out. @param {any} family @param {any[]} attributes @param {number} member @param {number} node @param {Say} say */
function cornerOf(family, attributes, member, node, say) {
  const [{ sizes }, widths] = [family, widthsOf(family, member)];
  const parts = [];
  for (let a = sizes.length - 1; a >= 0; a -= 1) {
    const nodes = Math.ceil(sizes[a] / widths[a]);
    if (nodes > 1) parts.unshift(stretch(attributes[a], node % nodes, widths[a], sizes[a], say));
    node = Math.floor(node / nodes);
  }
  return parts.join(" · ");
}

/** @param {any} domain @param {number} node @param {number} width @param {number} size @param {Say} say */
const stretch = (domain, node, width, size, say) =>
  span(domain, node * width, Math.min((node + 1) * width, size) - 1, say);

/** How much of a text a prefix covers. @param {any} family @param {any} domain @param {number} member @param {Say} say */
function beginning({ heights }, { kind, alphabet, length }, member, say) {
  const inBits = kind === "bits" || alphabet === "bytes";
  const all = alphabet === "bytes" ? 8 * length : length;
  return say(inBits ? "saysPrefixBits" : "saysPrefix", { digits: all - heights[member], all });
}

/** @param {number} codes */
const codeWidth = (codes) => [1, 2, 4].find((width) => codes <= 256 ** width) ?? 8;

/** Bytes of a member's report, where this page knows. @param {any} device @returns {number} */
function widthOf(device) {
  const { kind, size, payload_bytes: payload, inner } = device;
  if (payload) return 4 + payload;
  if (kind === "padded" || kind === "set_size") return widthOf(inner);
  if (kind === "onebit") return 1;
  if (kind === "grr" || kind === "cbr") return codeWidth(kind === "cbr" ? codesOf(device) : size);
  return ["sue", "oue", "rue", "the", "ss"].includes(kind) ? Math.ceil(size / 8) : NaN;
}

/**
 * Sentences on a report.
 * @param {any} collection
 * @param {{member: number, report: string}} entry which question or level was drawn, and the bytes in hexadecimal
 * @param {Say} say
 * @param {(text: any) => string} text
 * @returns {string[]}
 */
export function describe(collection, entry, say, text) {
  const ratio = ratioOf(collection.mechanism);
  return [...reported(collection, entry, say, text), say("odds", { sure: surest(ratio) }) + weakness(ratio, say)];
}

/** What the bytes say. @param {any} collection @param {any} entry @param {Say} say @param {(text: any) => string} text */
function reported({ policy, members, questions, mechanism }, { member, report }, say, text) {
  const bytes = bytesOf(report);
  if (policy === "single") {
    const { domain } = questions[0];
    const { family } = mechanism;
    return [family?.mechanisms ? drawn(family, domain, { member, bytes }, say) : words(mechanism, domain, bytes, say)];
  }
  if (policy === "joint") return jointly(mechanism.family, questions, { member, bytes }, say, text);
  if (policy === "one_of") {
    const { domain, text: asked } = questions[member];
    return [say("picked", { question: text(asked) }), words(members[member], domain, bytes, say)];
  }
  return together(members, questions, bytes, say, text);
}

/** A cell of a view as a combination of answers. @param {any} family @param {any[]} domains @param {number} member
 * @param {number} cell @param {Say} say @returns {string} */
function combination(family, domains, member, cell, say) {
  const parts = [];
  for (const attribute of [...family.views[member]].reverse()) {
    const domain = domains[attribute];
    parts.unshift(span(domain, cell % domain.size, cell % domain.size, say));
    cell = Math.floor(cell / domain.size);
  }
  return parts.join(" · ");
}

/**
 * What this page says of each family that asks about parts of the answers, by its kind:
 * `lookedAt` gives the questions that a member looks at, `cellOf` what one of its values stands for among several
 * questions, and `stretchOf` what it stands for within one answer.
 * @type {Record<string, {lookedAt?: (family: any, member: number) => number[], cellOf?: Value, stretchOf?: Value}>}
 * @typedef {(family: any, domains: any[], member: number, value: number, say: Say) => string} Value
 */
const FAMILIES = {
  tree: { stretchOf: nodeOf },
  grid: {
    lookedAt: (family, member) => {
      const widths = widthsOf(family, member);
      return [...widths.keys()].filter((a) => widths[a] < family.sizes[a]);
    },
    cellOf: cornerOf,
    stretchOf: cornerOf,
  },
  views: { lookedAt: (family, member) => family.views[member], cellOf: combination },
  coefficients: { lookedAt: (family, member) => family.member(member).map((/** @type {number[]} */ [a]) => a) },
};

/**
 * A report on questions that are asked together: which of them were drawn, and what is said about them.
 * @param {any} family
 * @param {any[]} questions
 * @param {{member: number, bytes: number[]}} report
 * @param {Say} say
 * @param {(text: any) => string} text
 * @returns {string[]}
 */
function jointly(family, questions, { member, bytes }, say, text) {
  const device = family.mechanism(member);
  const { lookedAt, cellOf } = FAMILIES[family.kind];
  const looked = /** @type {any} */ (lookedAt)(family, member);
  const named = looked.map((/** @type {number} */ a) => say("quoted", { text: text(questions[a].text) })).join(", ");
  if (!cellOf) {
    const sign = say(numberOf(bytes) === 0 ? "plus" : "minus");
    return [say("saysSign", { sign, questions: named, ...chances(device) })];
  }
  const domains = questions.map(({ domain }) => domain);
  const decode = (/** @type {number} */ cell) => cellOf(family, domains, member, cell, say);
  const [question] = looked.map((/** @type {number} */ a) => text(questions[a].text));
  const alone = looked.length === 1;
  const several = { questions: named, groups: device.size, example: decode(0) };
  const which = alone ? say("picked", { question }) : say("saysView", several);
  const fine = family.kind === "grid" ? [say("saysFine")] : [];
  return [[which, ...fine].join(" "), words(device, { decode }, bytes, say)];
}

/**
 * Every question of a report on all of them, as long as the widths are known.
 * @param {any[]} members
 * @param {any[]} questions
 * @param {number[]} bytes
 * @param {Say} say
 * @param {(text: any) => string} text
 * @returns {string[]}
 */
function together(members, questions, bytes, say, text) {
  const widths = members.map(widthOf);
  if (widths.reduce((sum, width) => sum + width, 0) !== bytes.length) return [say("saysCode", { bytes: bytes.length })];
  let at = 0;
  return members.map((member, i) => {
    const part = bytes.slice(at, (at += widths[i]));
    return `${text(questions[i].text)} ${words(member, questions[i].domain, part, say)}`;
  });
}
