/**
 * Rows: public columns that come with every report of a collection that says so, and stay linked to it.
 * The twin of `tacit.wire.rows`; the collector looks at every row again.
 *
 * @typedef {{name: string, type: string}} Column
 * @typedef {{table: string, columns: Column[]}} Rows
 */

import { areDifferent, isObject, isText, matches } from "../numbers/checks.js";
import { listed } from "../domains/domain.js";
import { InvalidSpec, InvalidValue } from "../errors.js";
import { areIntegers } from "../numbers/exact.js";
import { checkFields } from "../nested.js";

const WHO = "document.rows";
const MAX_COLUMNS = 256;
const MAX_TEXT = 256;
const MAX_NUMBER = 1e12;

/** What columns are not called, for uploads have columns of these names beside the public ones. */
const RESERVED = ["report", "member"];

/** What neither a table nor a column is called: a query would have to quote it, or would mean something else. */
const KEYWORDS = (
  "all analyse analyze and any array as asc asymmetric authorization between binary both by case cast check collate " +
  "collation column concurrently constraint create cross current_catalog current_date current_role current_schema " +
  "current_time current_timestamp current_user default deferrable desc distinct do else end except exists false " +
  "fetch for foreign freeze from full grant group having ilike in initially inner intersect into is isnull join " +
  "lateral leading left like limit localtime localtimestamp natural not notnull null offset on only or order outer " +
  "overlaps placing primary references returning right select session_user similar some symmetric system_user " +
  "table tablesample then to trailing true union unique user using variadic verbose when where window with"
).split(" ");

/** @param {unknown} value @returns {boolean} whether this names a question, a task, a table or a column */
export const isName = (value) => matches(value, /^[a-z][a-z0-9_]{0,39}$/);

/** @param {unknown} value @returns {boolean} whether this names a table or a column and can be written in SQL as it is */
export const isSqlName = (value) =>
  isName(value) && !KEYWORDS.includes(/** @type {string} */ (value)) && !/^pg_/.test(/** @type {string} */ (value));

/** What a column may hold, beside null. @type {Map<unknown, (value: any) => boolean>} */
const TYPES = new Map([
  ["integer", (value) => areIntegers([value], -MAX_NUMBER, MAX_NUMBER)],
  ["number", (value) => typeof value === "number" && Math.abs(value) <= MAX_NUMBER],
  ["text", (value) => isText(value) && [...value].length <= MAX_TEXT],
  ["boolean", (value) => typeof value === "boolean"],
  ["date", (value) => matches(value, /^\d{4}-\d\d-\d\d$/)],
]);

/** The public columns of a document. @param {any} rows @returns {Column[]} */
export function columnsOf(rows) {
  if (rows === null) return [];
  checkFields(WHO, ["columns", "table"], rows);
  const columns = listed(rows.columns, WHO, "columns");
  for (const column of columns) checkFields(WHO, ["name", "type"], column);
  const known = columns.every(({ name, type }) => isSqlName(name) && !RESERVED.includes(name) && TYPES.has(type));
  if (!isSqlName(rows.table) || !known || !columns.length || columns.length > MAX_COLUMNS) {
    throw new InvalidSpec(
      `${WHO}: table and 1 to ${MAX_COLUMNS} columns must be named by lower-case words that SQL does not reserve, with types`,
    );
  }
  if (!areDifferent(columns.map(({ name }) => name))) throw new InvalidSpec(`${WHO}: names of columns must differ`);
  return columns;
}

/** A row with all its columns; one that is left out is null. @param {Column[]} columns @param {any} row */
export function rowOf(columns, row) {
  if (!isObject(row)) throw new InvalidValue("row must be an object with the public columns of the collection");
  const given = new Map(Object.entries(row));
  const pairs = columns.map(({ name, type }) => {
    const value = given.get(name) ?? null;
    if (value !== null && !TYPES.get(type)?.(value)) throw new InvalidValue(`row: ${name} must be of type ${type}, or null`);
    given.delete(name);
    return [name, value];
  });
  if (given.size) throw new InvalidValue("row: has a column that the collection does not have");
  return Object.fromEntries(pairs);
}
