/**
 * The collection document on the device: what is asked, over which domains, at which epsilon, by which mechanism.
 * The twin of `tacit.wire.document`, as far as a client needs it.
 */

import { canonical, digest } from "./canonical.js";
import { areDifferent, isObject, matches } from "./checks.js";
import { listed } from "./domain.js";
import { InvalidSpec, InvalidValue } from "./errors.js";
import { deviceOf } from "./kinds.js";
import { checkFields } from "./nested.js";
import { domainOf } from "./product.js";
import { columnsOf, isName, rowOf } from "./rows.js";

const FIELDS = [
  ...["about", "epsilon", "invitations", "mechanism", "minimum_cohort", "origins", "plan", "policy"],
  ...["questions", "retention_days", "rows", "title", "version"],
];
const MAX_QUESTIONS = 128;

/** @param {unknown} holds @param {string} where @param {string} rule */
function insist(holds, where, rule) {
  if (!holds) throw new InvalidSpec(`${where} must be ${rule}`);
}

/**
 * Text in one or more languages: {"en": "..."}.
 * @param {any} value
 * @param {string} where
 * @param {number} most
 */
function texts(value, where, most) {
  const pairs = Object.entries(isObject(value) ? value : {});
  const fits = ([language, text]) =>
    matches(language, /^[a-z]{2,3}(_[a-z]{2,8})?$/) && matches(text, /[^]/) && [...text].length <= most;
  insist(pairs.length && pairs.every(fits), where, `text of 1 to ${most} characters by language`);
}

/** @param {any} value @param {number} i @returns {Question} */
function question(value, i) {
  const where = `questions[${i}]`;
  checkFields(where, ["domain", "name", "task", "text"], value);
  for (const word of [value.name, value.task]) insist(isName(word), where, "named by lower-case words");
  texts(value.text, where, 500);
  return { ...value, domain: domainOf(value.domain) };
}

/** How many values a mechanism, or a family over one domain, is for. @param {any} device @returns {number | bigint} */
const sizeOf = ({ inner, family = inner, size, top }) => size ?? (family ? sizeOf(family) : top + 1);

/**
 * A collection document, checked. Two documents are the same collection if and only if their ids agree.
 * @typedef {{name: string, text: Record<string, string>, domain: import("./domain.js").Domain, task: string}} Question
 */
export class Collection {
  /** @param {any} value the document */
  constructor(value) {
    checkFields("document", FIELDS, value);
    insist(value.version === 1, "document.version", "1");
    texts(value.title, "document.title", 200);
    texts(value.about, "document.about", 4000);
    // What concerns the collector alone is taken as it was published: the digest holds it fast.
    Object.assign(this, value);
    /** SHA-256 of the canonical document, in hexadecimal. @type {string} */
    this.id = digest(value);
    /** @type {Question[]} */
    this.questions = listed(value.questions, "document", "questions").map(question);
    this.mechanism = deviceOf(value.mechanism);
    /** The privacy budget of one respondent, in wire form. */
    this.epsilon = this.mechanism.epsilon;
    /** What a respondent takes part in once: the first document of a plan, or this one. @type {string} */
    this.planId = value.plan?.first || this.id;
    this.#check(value);
    Object.freeze(this);
  }

  /** @param {any} value the document */
  #check({ policy, epsilon, rows }) {
    const { questions, members, mechanism } = this;
    insist(canonical(epsilon) === canonical(this.epsilon), "document.epsilon", "that of the mechanism");
    const count = questions.length;
    insist(count > 0 && count <= MAX_QUESTIONS, "document.questions", `a list of 1 to ${MAX_QUESTIONS} questions`);
    const names = [...questions, ...columnsOf(rows)].map(({ name }) => name);
    insist(areDifferent(names), "document", "about questions and columns of different names");
    const known = count > 1 ? [mechanism.kind, "joint"] : ["single"];
    insist(known.includes(policy), "document.policy", '"single" for one question, else "joint" or the kind of the mechanism');
    const sizes = policy === "joint" ? /** @type {any} */ (mechanism).family?.sizes : members.map(sizeOf);
    const needed = questions.map(({ domain: { size } }) => size);
    insist(String(sizes) === String(needed), "document.mechanism", `for questions with ${needed} answers`);
  }

  /**
   * The mechanism of every question; of questions that are asked together, the one of all.
   * @returns {import("./base.js").Device[]}
   */
  get members() {
    const { family, members } = /** @type {any} */ (this.mechanism);
    if (["single", "joint"].includes(this.policy)) return [this.mechanism];
    return family?.mechanisms ?? members ?? [];
  }

  /**
   * A respondent's answers as the value that the mechanism perturbs; wrong ones are refused, never shown.
   * @param {Record<string, any>} answers
   * @returns {any}
   */
  encode(answers) {
    const indices = this.questions.map(({ name, domain }) => {
      if (Object.hasOwn(answers ?? {}, name)) return domain.encode(answers[name]);
      throw new InvalidValue(`question '${name}' has no answer; every question must be answered`);
    });
    const { family } = /** @type {any} */ (this.mechanism);
    return this.policy === "single" ? indices[0] : (family?.ofAnswers(indices) ?? indices);
  }

  /**
   * The public columns that go along with a report, all of them; null where the document has none.
   * @param {any} row
   * @returns {Record<string, any> | null}
   */
  checkRow(row) {
    const checked = rowOf(this.rows?.columns ?? [], row ?? {});
    return this.rows && checked;
  }
}
