/**
 * The collection document on the device: what is asked, over which domains, at which epsilon, by which mechanism.
 * The twin of `tacit.wire.document`: what one of them refuses, the other refuses too.
 */

import { makeDevice } from "../base.js";
import { canonical, digest } from "../numbers/canonical.js";
import { areDifferent, insist, isObject, matches, spans } from "../numbers/checks.js";
import { listed } from "../domains/domain.js";
import { InvalidSpec, InvalidValue } from "../errors.js";
import { areIntegers } from "../numbers/exact.js";
import { kindsIn, loadTicks, loadTokens } from "../load.js";
import { checkFields } from "../nested.js";
import { checkPlan } from "./plan.js";
import { domainOf } from "../domains/product.js";
import { columnsOf, isName, isSqlName, rowOf } from "./rows.js";
import { checkShuffled } from "./shuffle.js";

const FIELDS = [
  ...["about", "epsilon", "invitations", "mechanism", "minimum_cohort", "origins", "plan", "policy"],
  ...["questions", "retention_days", "rows", "title", "version"],
];
/** What version 2 adds, each null or an object. */
const ADDED = ["shuffle", "account", "windows"];
/** What version 3 adds, likewise. */
const LATER = ["integrity", "tokens"];
const MAX_QUESTIONS = 128;
const MAX_ORIGINS = 64;

/** Whether a document says anything about time. @param {any} value @returns {boolean} */
const isTimed = (value) => (value?.windows ?? value?.account ?? null) !== null;

/**
 * Text in one or more languages: {"en": "..."}.
 * @param {any} value
 * @param {string} where
 * @param {number} most
 */
function texts(value, where, most) {
  const pairs = Object.entries(isObject(value) ? value : {});
  const fits = ([language, text]) => matches(language, /^[a-z]{2,3}(_[a-z]{2,8})?$/) && spans(text, most);
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

/** Refuse a document that has not exactly the fields of its version. @param {any} value the document */
function checkVersion(value) {
  const version = isObject(value) && Object.hasOwn(value, "version") ? value.version : 1;
  insist([1, 2, 3].includes(version), "document.version", "1 to 3; a newer document needs a newer script");
  checkFields("document", [FIELDS, ADDED, LATER].slice(0, version).flat().sort(), value);
}

/** What the collector is told about itself. @param {any} value the document */
function checkSettings({ minimum_cohort: cohort, retention_days: days, origins, invitations }) {
  insist(areIntegers([cohort], 1, 1e9), "document.minimum_cohort", "an integer from 1 to 10^9");
  insist(areIntegers([days], 1, 36500), "document.retention_days", "an integer from 1 to 36500");
  insist(typeof invitations === "boolean", "document.invitations", "true or false");
  const isOrigin = (/** @type {unknown} */ one) => matches(one, /^(https?:\/\/[a-z0-9.-]+(:[0-9]{1,5})?|\*)$/);
  const list = listed(origins, "document", "origins");
  insist(list.length <= MAX_ORIGINS && list.every(isOrigin), "document.origins", "a list of at most 64 web origins");
}

/** @param {Question[]} questions @param {any} rows @param {any} plan */
function checkRows(questions, rows, plan) {
  const names = [...questions, ...columnsOf(rows)].map(({ name }) => name);
  insist(areDifferent(names), "document", "about questions and columns of different names");
  if (rows === null) return;
  insist(questions.every(({ name }) => isSqlName(name)), "document.questions", "named by words that SQL does not reserve");
  insist(plan === null, "document.plan", "null where there are rows: reports of a plan are counted, not kept");
}

/**
 * JSON whose numbers are integers, written as such: canonical JSON has no floats, and `1.0` would be read as 1.
 * @param {string} text
 * @returns {any}
 */
function parse(text) {
  insist(!/\d[.e]/i.test(text.replace(/"(?:[^"\\]|\\.)*"/g, "")), "document", "JSON whose numbers are integers, without point or exponent");
  try {
    return JSON.parse(text);
  } catch {
    throw new InvalidSpec("document must be JSON");
  }
}

/**
 * A collection document, checked. Two documents are the same collection if and only if their ids agree.
 * @typedef {{name: string, text: Record<string, string>, domain: import("../domains/domain.js").Domain, task: string}} Question
 */
export class Collection {
  /**
   * Read a document, and load the kinds that it needs.
   * @param {any} document its text, or what was parsed of it
   * @returns {Promise<Collection>}
   */
  static async read(document) {
    const value = typeof document === "string" ? parse(document) : document;
    // What reads windows is loaded for documents that have some, and is needed then: without, they are refused.
    const timed = isTimed(value) ? (await loadTicks()).checkWindowed : undefined;
    const third = value?.version === 3 ? (await loadTokens()).checkTokens : undefined;
    return new Collection(value, await kindsIn(value?.mechanism), timed, third);
  }

  /**
   * @param {any} value the document
   * @param {ReadonlyArray<any>} kinds the kinds of mechanisms and families that it may use
   * @param {typeof import("./windows.js").checkWindowed} [checkWindowed]
   * @param {typeof import("../client/tokens.js").checkTokens} [checkTokens]
   */
  constructor(value, kinds, checkWindowed, checkTokens) {
    checkVersion(value);
    texts(value.title, "document.title", 200);
    texts(value.about, "document.about", 4000);
    checkSettings(value);
    checkPlan(value.plan);
    /** The terms under which reports are shuffled, if they are. @type {any} */
    this.shuffle = null;
    /** The calendar, where the question is asked again and again, and what its reports are charged to. @type {any} */
    this.windows = null;
    /** @type {any} */
    this.account = null;
    /** The key that signs anonymous tokens, where reports need one. @type {any} */
    this.tokens = null;
    Object.assign(this, value);
    /** @type {Question[]} */
    this.questions = listed(value.questions, "document", "questions").map(question);
    this.mechanism = makeDevice(value.mechanism, kinds);
    /** The privacy budget of one respondent, in wire form. */
    this.epsilon = this.mechanism.epsilon;
    this.#check(value);
    insist(checkWindowed || !isTimed(value), "document.windows", "read with Collection.read");
    insist(checkTokens || value.version < 3, "document.tokens", "read with Collection.read");
    checkTokens?.(value);
    checkWindowed?.(value, this.mechanism);
    if (this.shuffle !== null) checkShuffled(value, this.mechanism);
    /** SHA-256 of the canonical document, in hexadecimal. @type {string} */
    this.id = digest(value);
    /** What a respondent takes part in once: the first document of a plan, or this one. @type {string} */
    this.planId = value.plan?.first || this.id;
    Object.freeze(this);
  }

  /** @param {any} value the document */
  #check({ policy, epsilon, rows, plan }) {
    const { questions, mechanism } = this;
    insist(canonical(epsilon) === canonical(this.epsilon), "document.epsilon", "that of the mechanism");
    const count = questions.length;
    insist(count > 0 && count <= MAX_QUESTIONS, "document.questions", `a list of 1 to ${MAX_QUESTIONS} questions`);
    checkRows(questions, rows, plan);
    const known = count > 1 ? ["one_of", "all_of", "joint"] : ["single"];
    insist(known.includes(policy), "document.policy", '"single" for one question, else "one_of", "all_of" or "joint"');
    const asked = ["single", "joint"].includes(policy) || (mechanism.kind === policy && this.members.length === count);
    insist(asked, "document.mechanism", `${policy} with a member per question`);
    const sizes = policy === "joint" ? /** @type {any} */ (mechanism).family?.sizes : this.members.map((one) => one.domainSize);
    const needed = questions.map(({ domain: { size } }) => size);
    insist(String(sizes) === String(needed), "document.mechanism", `for questions with ${needed} answers`);
  }

  /**
   * The mechanism of every question; of questions that are asked together, the one of all.
   * @returns {import("../base.js").Device[]}
   */
  get members() {
    const { family, members } = /** @type {any} */ (this.mechanism);
    if (["single", "joint"].includes(this.policy)) return [this.mechanism];
    return (family?.kind === "questions" ? family.mechanisms : members) ?? [];
  }

  /** Whether reports are shuffled and no party runs two roles: only then may the document claim amplification. */
  get rolesApart() {
    return this.shuffle?.together.length === 0;
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
