/** A collection while it is being written: what the builder's form holds, and the draft it stands for. */

/** Domains that can be asked for more than a histogram. */
const SEVERAL_TASKS = ["ordered", "integers", "buckets", "pair", "items", "text", "bits"];

/** How many symbols the alphabets have that have a name, the end of a text included. */
const SYMBOLS = /** @type {Record<string, number>} */ ({ lower: 27, printable: 96, bytes: 256 });

/** Kinds of questions that need not be answered; a text may be left empty anyway. */
export const OPTIONAL = ["categories", "ordered", "integers", "buckets", "booleans", "items"];

const DECLINED = "Prefer not to say";

let made = 0;

/** @returns {any} a question as the form holds it: everything is text until the draft is made */
export const newQuestion = () => ({
  key: (made += 1),
  name: "",
  text: {},
  kind: "categories",
  task: "histogram",
  labels: "",
  other: "",
  low: "0",
  high: "10",
  step: "1",
  edges: "",
  openBelow: false,
  openAbove: true,
  length: "3",
  most: "",
  alphabet: "lower",
  characters: "",
  textLength: "8",
  optional: false,
  declined: DECLINED,
  parts: [],
});

/** The same question once more, below it, under a name of its own. @param {any} question */
export const copyOf = (question) => ({
  ...structuredClone(question),
  key: (made += 1),
  name: "",
  parts: question.parts.map((/** @type {any} */ part) => ({ ...structuredClone(part), key: (made += 1) })),
});

/** A question as the form holds it when its kind was chosen. @param {any} question */
export function completed(question) {
  if (question.kind === "pair" && !question.parts.length) question.parts = [newPart("first"), newPart("second")];
  return question;
}

/** An attribute of a question about two. @param {string} name */
const newPart = (name) => ({ ...newQuestion(), name, kind: "integers" });

/** Whether a question is asked round by round. @param {any} question */
export const isAdaptive = ({ kind, task }) => kind === "items" && task !== "shares";

/** Whether a question may be declined. @param {any} question */
export const isOptional = ({ kind, optional }) => optional && OPTIONAL.includes(kind);

/** @returns {any} */
export const newModel = () => ({
  languages: ["en"],
  title: {},
  about: {},
  questions: [newQuestion()],
  policy: "one_of",
  epsilon: "1",
  respondents: 10000,
  minimumCohort: 100,
  retentionDays: 365,
  origins: "",
  invitations: false,
  tokens: false,
  k: 16,
  tableSize: 2,
  hasColumns: false,
  table: "",
  columns: [{ name: "", type: "text" }],
  queries: "",
  shuffle: null,
});

/** @param {string} text @returns {string[]} */
export const lines = (text) =>
  text
    .split(/\n/)
    .map((line) => line.trim())
    .filter(Boolean);

/** @param {string} text @returns {string[]} */
export const items = (text) => text.split(/[\s,;]+/).filter(Boolean);

/** A name for a question from what it asks. @param {string} text @param {number} place */
export function nameFrom(text, place) {
  const plain = text
    .normalize("NFKD")
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, "_")
    .replace(/^[_0-9]+|_+$/g, "");
  return plain.split("_").slice(0, 4).join("_").slice(0, 40) || `question_${place + 1}`;
}

/** @param {any} a @param {any} b */
const byCodePoint = (a, b) => a.codePointAt(0) - b.codePointAt(0);

/** The alphabet of a text as a document names it. @param {any} question @returns {string} */
export const alphabetOf = ({ alphabet, characters }) =>
  alphabet === "own"
    ? [...new Set(characters.normalize("NFC"))].sort(byCodePoint).join("")
    : alphabet;

/** The longest texts over an alphabet that fit into 64 bits; 0 without characters. @param {string} alphabet */
export function fitting(alphabet) {
  const symbols = BigInt(SYMBOLS[alphabet] ?? [...alphabet].length + 1);
  if (symbols < 2n) return 0;
  let longest = 1;
  while (longest < 64 && symbols ** BigInt(longest + 1) <= 2n ** 64n) longest += 1;
  return longest;
}

/** @param {any} part @returns {any} the wire form of an attribute */
const attributeOf = (part) => ({ ...domainOf(part), name: part.name.trim() });

/** @param {any} question @returns {any} the wire form of its domain */
function domainOf(question) {
  const answers = answersOf(question);
  return isOptional(question) ? { kind: "optional", domain: answers, declined: question.declined.trim() } : answers;
}

/** @param {any} question @returns {any} the wire form of what can be answered */
function answersOf(question) {
  const { kind, labels, other, low, high, step, edges, openBelow, openAbove, length, most, textLength } = question;
  if (kind === "pair") return { kind: "product", attributes: question.parts.map(attributeOf) };
  if (kind === "items") return { kind, labels: lines(labels), ...(most && { most: Number(most) }) };
  if (kind === "text") return { kind, alphabet: alphabetOf(question), length: Number(textLength) };
  if (kind === "booleans") return { kind };
  if (kind === "integers") return { kind, low: Number(low), high: Number(high), step: Number(step) };
  if (kind === "buckets") return { kind, edges: items(edges), open_below: openBelow, open_above: openAbove };
  if (kind === "bits") return { kind, length: Number(length) };
  const listed = { kind, labels: lines(labels) };
  return kind === "categories" && other.trim() ? { ...listed, other: other.trim() } : listed;
}

/** Texts in the languages of the collection, where they were filled in. @param {any} texts @param {string[]} languages */
const chosen = (texts, languages) =>
  Object.fromEntries(
    languages.map((language) => [language, (texts[language] ?? "").trim()]).filter(([, text]) => text),
  );

/** Whether the task of every question follows from how they are asked: together, or beside public columns. @param {any} model */
export const isOneTask = ({ hasColumns, policy, questions }) =>
  hasColumns || (policy === "joint" && questions.length > 1);

/** The names of all questions: those that were given, and for the others one from what they ask. @param {any} model @returns {string[]} */
export function namesOf({ questions, languages }) {
  const taken = new Set(questions.map((/** @type {any} */ { name }) => name));
  return questions.map((/** @type {any} */ { name, text }, /** @type {number} */ i) => {
    if (name) return name;
    let made = nameFrom(text[languages[0]] ?? "", i);
    if (taken.has(made)) made = `${made.slice(0, 36)}_${i + 1}`;
    taken.add(made);
    return made;
  });
}

/** The questions of a draft, by different names. @param {any} model */
function questionsOf(model) {
  const { languages } = model;
  const names = namesOf(model);
  return model.questions.map((/** @type {any} */ question, /** @type {number} */ i) => {
    const name = names[i];
    const task = SEVERAL_TASKS.includes(question.kind) ? question.task : "histogram";
    const made = domainOf(question);
    // A domain is named after its question, but for those that consist of others.
    const domain = ["product", "optional"].includes(made.kind) ? made : { ...made, name };
    return { name, text: chosen(question.text, languages), domain, ...(!isOneTask(model) && { task }) };
  });
}

/** How questions are asked, and what comes with the reports. @param {any} model */
function asking({ questions, policy, hasColumns, table, columns, queries, tableSize, k }) {
  if (hasColumns) {
    const named = columns.map((/** @type {any} */ { name, type }) => ({ name: name.trim(), type }));
    return { rows: { table: table.trim(), columns: named }, queries: lines(queries) };
  }
  if (questions.length === 1) return { policy: "single", ...(questions.some(isAdaptive) && { k }) };
  return { policy, ...(policy === "joint" && { k: tableSize }) };
}

/** The draft that the collector is sent. @param {any} model */
export function draftOf(model) {
  const { languages } = model;
  const about = chosen(model.about, languages);
  return {
    title: chosen(model.title, languages),
    ...(Object.keys(about).length && { about }),
    questions: questionsOf(model),
    ...asking(model),
    epsilon: model.epsilon,
    respondents: model.respondents,
    minimum_cohort: model.minimumCohort,
    retention_days: model.retentionDays,
    origins: items(model.origins),
    invitations: model.invitations,
    ...(model.tokens && { tokens: true }),
    ...(model.shuffle && { shuffle: model.shuffle }),
  };
}

/** @param {any} texts @returns {any} plain text is English */
const byLanguage = (texts) => (typeof texts === "string" ? { en: texts } : { ...texts });

/** The form of a draft that was saved. @param {any} draft @returns {any} */
export function modelOf(draft) {
  const title = byLanguage(draft.title);
  return {
    ...newModel(),
    languages: Object.keys(title).length ? Object.keys(title) : ["en"],
    title,
    about: byLanguage(draft.about ?? {}),
    questions: draft.questions.map(questionOf),
    policy: ["all_of", "joint"].includes(draft.policy) ? draft.policy : "one_of",
    epsilon: String(draft.epsilon),
    respondents: draft.respondents ?? 10000,
    minimumCohort: draft.minimum_cohort ?? 100,
    retentionDays: draft.retention_days ?? 365,
    origins: (draft.origins ?? []).join("\n"),
    invitations: draft.invitations ?? false,
    tokens: draft.tokens ?? false,
    shuffle: draft.shuffle ?? null,
    ...(draft.policy === "joint" ? { tableSize: draft.k ?? 2 } : { k: draft.k ?? 32 }),
    ...(draft.rows && { hasColumns: true, table: draft.rows.table, columns: draft.rows.columns.map(copied) }),
    queries: (draft.queries ?? []).map((/** @type {string} */ sql) => sql.replace(/\s+/g, " ")).join("\n"),
  };
}

/** @param {any} column */
const copied = ({ name, type }) => ({ name, type });

/** The wire form of a domain as the form holds it. @param {any} domain */
function filled(domain) {
  const given = { ...domain, labels: (domain.labels ?? []).join("\n"), edges: (domain.edges ?? []).join(", ") };
  const known = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== null && value !== undefined));
  const numbers = Object.fromEntries(
    ["low", "high", "step", "length", "most"].filter((key) => key in known).map((key) => [key, String(known[key])]),
  );
  const ends = { openBelow: domain.open_below ?? false, openAbove: domain.open_above ?? false };
  return { ...known, ...numbers, ...ends, ...(domain.kind === "text" && spelt(domain)) };
}

/** @param {any} domain of texts */
function spelt({ alphabet, length }) {
  const named = alphabet in SYMBOLS ? { alphabet } : { alphabet: "own", characters: alphabet };
  return { ...named, textLength: String(length), length: "3" };
}

/** @param {any} question */
function questionOf({ name, text, domain: given, task }) {
  const { domain, ...declining } = given.kind === "optional" ? { domain: given.domain, optional: true, declined: given.declined ?? DECLINED } : { domain: given };
  const rest = { name, text: byLanguage(text), task: task ?? "histogram" };
  if (domain.kind !== "product") return { ...newQuestion(), ...filled(domain), ...rest, ...declining };
  const parts = domain.attributes.map((/** @type {any} */ one) => ({ ...newPart(one.name), ...filled(one) }));
  return { ...newQuestion(), ...rest, kind: "pair", parts };
}
