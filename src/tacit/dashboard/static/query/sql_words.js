/** What an SQL text consists of, and what may be written next. No page is needed to find that out. */

const KEYWORDS = (
  "SELECT FROM WHERE AND OR NOT BETWEEN IN LIKE IS NULL GROUP BY ORDER ASC DESC LIMIT OFFSET AS FILTER CASE WHEN " +
  "THEN ELSE END EXPLAIN TRUE FALSE COUNT SUM AVG VARIANCE VAR_POP VAR_SAMP STDDEV STDDEV_POP STDDEV_SAMP"
).split(" ");
const KNOWN = new Set(KEYWORDS);

/** What is offered: the text that is put in, and what it is. @type {[string, string][]} */
const OFFERED = [
  ["SELECT ", "the aggregates"],
  ["COUNT(*)", "how many rows"],
  ["SUM(", "of a number"],
  ["AVG(", "of a number"],
  ["MEDIAN(", "of a private number"],
  ["STDDEV(", "of a public column"],
  ["VARIANCE(", "of a public column"],
  ["FROM ", "the table"],
  ["WHERE ", "conditions"],
  ["AND ", "both hold"],
  ["OR ", "one of them holds"],
  ["NOT ", "it does not hold"],
  ["BETWEEN ", "from AND to"],
  ["IN (", "one of several values"],
  ["IS NULL", "missing"],
  ["LIKE ", "a pattern of public text"],
  ["GROUP BY ", "a row per value"],
  ["ORDER BY ", "which row comes first"],
  ["DESC", "largest first"],
  ["LIMIT ", "at most so many rows"],
  ["FILTER (WHERE ", "of one aggregate"],
  ["EXPLAIN ", "the plan, not the answer"],
  ["AS ", "another name"],
];

const MOST = 8;
const FEW = 64;
const TOKEN = /'(?:[^']|'')*'?|"[^"]*"?|--[^\n]*|\b\d+(?:\.\d+)?\b|[A-Za-z_]\w*|[^\w'"]|\w/g;

/**
 * The pieces of a text with what they are: keyword, private, public, string, number, or nothing.
 * @param {string} sql
 * @param {any} table
 * @returns {{text: string, kind: string}[]}
 */
export function pieces(sql, table) {
  const pair = (/** @type {any} */ one) => [one.name, one.private ? "private" : "public"];
  const columns = new Map(table.columns.map(pair));
  const kindOf = (/** @type {string} */ text) => {
    if (text[0] === "'") return "string";
    if (/^\d/.test(text)) return "number";
    if (columns.has(text.toLowerCase())) return columns.get(text.toLowerCase());
    return KNOWN.has(text.toUpperCase()) ? "keyword" : "";
  };
  return (sql.match(TOKEN) ?? []).map((text) => ({ text, kind: kindOf(text) }));
}

/** Whether a text ends inside of quotes. @param {string} before */
const isQuoted = (before) => (before.match(/'/g) ?? []).length % 2 === 1;

/** SQL text of a label. @param {string} label */
export const quoted = (label) => `'${label.replaceAll("'", "''")}'`;

/** The values of a private column that can be listed, as SQL and as they are. @param {any} column @returns {string[][]} */
function values({ type, private: hidden, labels }) {
  if (!hidden) return [];
  if (type === "boolean") return ["TRUE", "FALSE"].map((one) => [one, one]);
  return labels.map((/** @type {string} */ one) => [quoted(one), one]);
}

/** The private column with listed values that is compared here. @param {string} before @param {any} table */
function compared(before, table) {
  const found = before.match(/([A-Za-z_]\w*)\s*(?:=|<>|!=|(?:not\s+)?in\s*\((?:[^()]*,)?)\s*$/i);
  const column = found && table.columns.find((/** @type {any} */ one) => one.name === found[1].toLowerCase());
  return column && values(column).length ? column : null;
}

/** Values of a column that begin so. @param {any} column @param {string} typed @param {number} from */
const listed = (column, typed, from) => ({
  from,
  items: values(column)
    .filter(([, name]) => name.toLowerCase().startsWith(typed.toLowerCase()))
    .map(([text, name]) => ({ text, name, about: column.name })),
});

/** @param {any} column */
export const aboutColumn = (column) =>
  column.private ? `private, ${column.domain}` : `public ${column.type}`;

/**
 * What may stand at the end of a text: items {text, name, about}, in place of everything after `from`.
 * @param {string} before the text up to the caret
 * @param {any} table
 * @param {boolean} asked whether somebody asked, without having typed a letter
 */
export function completions(before, table, asked) {
  if (isQuoted(before)) {
    const from = before.lastIndexOf("'");
    const column = compared(before.slice(0, from), table);
    return column ? cut(listed(column, before.slice(from + 1), from)) : { from, items: [] };
  }
  const typed = /[A-Za-z_]\w*$/.exec(before)?.[0] ?? "";
  const from = before.length - typed.length;
  const rest = before.slice(0, from);
  const column = compared(rest, table);
  if (column && (asked || typed || /\s$/.test(rest))) return cut(listed(column, typed, from));
  if ((!typed && !asked) || /\w$/.test(rest)) return { from, items: [] };
  return cut({ from, items: words(typed, table, rest) });
}

/** @param {string} typed @param {any} table @param {string} rest */
function words(typed, table, rest) {
  const begins = (/** @type {any} */ { name }) => name.startsWith(typed.toLowerCase());
  const names = [{ text: table.name, name: table.name, about: "table" }].filter(begins);
  if (/\bfrom\s+$/i.test(rest)) return names;
  const columns = table.columns
    .filter(begins)
    .map((/** @type {any} */ one) => ({ ...one, text: one.name, about: aboutColumn(one) }));
  const offered = OFFERED.filter(([text]) => text.startsWith(typed.toUpperCase()));
  return [...columns, ...offered.map(([text, about]) => ({ text, name: text.trim(), about })), ...names];
}

/** @param {{from: number, items: any[]}} found */
const cut = ({ from, items }) => ({ from, items: items.slice(0, MOST) });

/** A condition on a private column, to begin with. @param {any} column */
function condition({ name, type, labels, low, high }) {
  if (labels.length) return `${name} = ${quoted(labels[0])}`;
  if (type === "boolean") return `${name} = TRUE`;
  const width = Math.floor((high - low + 1) / 4);
  return `${name} BETWEEN ${low + width} AND ${Math.max(low + width, high - width)}`;
}

/** Queries to begin with. @param {any} table @returns {{title: string, sql: string}[]} */
export function examples({ name, columns }) {
  const hidden = columns.filter((/** @type {any} */ one) => one.private);
  const open = columns.filter((/** @type {any} */ one) => !one.private);
  const measure = open.find((/** @type {any} */ { type }) => ["number", "integer"].includes(type))?.name;
  const group = open.find((/** @type {any} */ { type }) => ["text", "boolean"].includes(type))?.name;
  const isSmall = (/** @type {any} */ { labels: { length }, type }) => (length && length <= FEW) || type === "boolean";
  const few = hidden.find(isSmall);
  // Values with an order come in it; labels without one by size.
  const sorted = few?.ordered ? "" : "\nORDER BY 2 DESC";
  const where = hidden.slice(0, 2).map(condition);
  const all = measure ? `COUNT(*), SUM(${measure}), AVG(${measure})` : "COUNT(*)";
  const made = [
    ["A region", `SELECT ${all}\nFROM ${name}\nWHERE ${where.join(" AND ")}`],
    group && ["By a public column", `SELECT ${group}, COUNT(*)\nFROM ${name}\nWHERE ${where[0]}\nGROUP BY ${group}`],
    few && ["By a private column", `SELECT ${few.name}, COUNT(*)\nFROM ${name}\nGROUP BY ${few.name}${sorted}`],
    ["The plan first", `EXPLAIN SELECT ${measure ? `AVG(${measure})` : "COUNT(*)"}\nFROM ${name}\nWHERE ${where[0]}`],
  ];
  return made.filter(Boolean).map((pair) => ({ title: pair[0], sql: pair[1] }));
}
