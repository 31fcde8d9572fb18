/**
 * Rows: public columns that come with every report of a collection that says so, and stay linked to it.
 * The twin of `tacit.wire.rows`; the collector looks at every row again.
 *
 * @typedef {{name: string, type: string}} Column
 * @typedef {{table: string, columns: Column[]}} Rows
 */

import { isObject, isText, matches } from "./checks.js";
import { listed } from "./domain.js";
import { InvalidSpec, InvalidValue } from "./errors.js";
import { areIntegers } from "./exact.js";
import { checkFields } from "./nested.js";

const WHO = "document.rows";
const MAX_COLUMNS = 256;
const MAX_TEXT = 256;
const MAX_NUMBER = 1e12;

/** @param {unknown} value @returns {boolean} whether this names a question, a task, a table or a column */
export const isName = (value) => matches(value, /^[a-z][a-z0-9_]{0,39}$/);

/** What a column may hold, beside null. @type {Record<string, (value: any) => boolean>} */
const TYPES = {
  __proto__: null,
  integer: (value) => areIntegers([value], -MAX_NUMBER, MAX_NUMBER),
  number: (value) => typeof value === "number" && Math.abs(value) <= MAX_NUMBER,
  text: (value) => isText(value) && [...value].length <= MAX_TEXT,
  boolean: (value) => typeof value === "boolean",
  date: (value) => matches(value, /^\d{4}-\d\d-\d\d$/),
};

/** The public columns of a document. @param {any} rows @returns {Column[]} */
export function columnsOf(rows) {
  if (rows === null) return [];
  checkFields(WHO, ["columns", "table"], rows);
  const columns = listed(rows.columns, WHO, "columns");
  for (const column of columns) checkFields(WHO, ["name", "type"], column);
  const known = columns.every(({ name, type }) => isName(name) && TYPES[type]);
  if (!isName(rows.table) || !known || !columns.length || columns.length > MAX_COLUMNS) {
    throw new InvalidSpec(`${WHO}: table and 1 to ${MAX_COLUMNS} columns must be named by lower-case words, with types`);
  }
  return columns;
}

/** A row with all its columns; one that is left out is null. @param {Column[]} columns @param {any} row */
export function rowOf(columns, row) {
  if (!isObject(row)) throw new InvalidValue("row must be an object with the public columns of the collection");
  const given = new Map(Object.entries(row));
  const pairs = columns.map(({ name, type }) => {
    const value = given.get(name) ?? null;
    if (value !== null && !TYPES[type](value)) throw new InvalidValue(`row: ${name} must be of type ${type}, or null`);
    given.delete(name);
    return [name, value];
  });
  if (given.size) throw new InvalidValue("row: has a column that the collection does not have");
  return Object.fromEntries(pairs);
}
