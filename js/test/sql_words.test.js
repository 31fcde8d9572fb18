/** What the page for SQL completes, colours and offers. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { completions, examples, pieces } from "../../src/tacit/dashboard/static/query/sql_words.js";

const column = (name, type, more = {}) => ({ name, type, private: true, domain: "", labels: [], low: 0, high: 0, ...more });
const TABLE = {
  name: "people",
  columns: [
    column("age", "integer", { high: 99 }),
    column("state", "text", { labels: ["CA", "NY", "O'X"] }),
    column("smoker", "boolean"),
    column("os", "text", { private: false }),
    column("hours", "number", { private: false }),
  ],
};

const offered = (before, asked = false) => completions(before, TABLE, asked).items.map(({ text }) => text);

test("words that were begun are completed, columns first", () => {
  assert.deepEqual(offered("SELECT COUNT(*) FROM people WHERE s"), ["state", "smoker", "SELECT ", "SUM(", "STDDEV("]);
  assert.deepEqual(offered("sel"), ["SELECT "]);
  assert.deepEqual(offered("SELECT "), []);
  assert.deepEqual(offered("SELECT COUNT(*) FROM "), []);
  assert.deepEqual(offered("SELECT COUNT(*) FROM ", true), ["people"]);
  assert.deepEqual(offered("SELECT 3x"), []);
});

test("values of private columns are completed where they are compared", () => {
  const where = "SELECT COUNT(*) FROM people WHERE ";
  assert.deepEqual(offered(`${where}state = `), ["'CA'", "'NY'", "'O''X'"]);
  assert.deepEqual(offered(`${where}state <> 'n`), ["'NY'"]);
  assert.deepEqual(offered(`${where}state IN ('CA', 'o`), ["'O''X'"]);
  assert.deepEqual(offered(`${where}state not in (`, true), ["'CA'", "'NY'", "'O''X'"]);
  assert.deepEqual(offered(`${where}smoker = t`), ["TRUE"]);
  assert.deepEqual(offered(`${where}age = `), []);
  assert.deepEqual(offered(`${where}os = 'w`), []);
  assert.equal(completions(`${where}state = 'C`, TABLE, false).from, where.length + "state = ".length);
});

test("every letter of a text is in one of its pieces", () => {
  const sql = "SELECT os, 'it''s' FROM people -- why\nWHERE AGE < 3.5 AND \"os\" = 'open";
  const found = pieces(sql, TABLE);
  assert.equal(found.map(({ text }) => text).join(""), sql);
  const kinds = Object.fromEntries(found.map(({ text, kind }) => [text, kind]));
  assert.deepEqual([kinds.SELECT, kinds.AGE, kinds.os, kinds["3.5"], kinds["'it''s'"]], ["keyword", "private", "public", "number", "string"]);
  assert.deepEqual(pieces("", TABLE), []);
});

test("examples fit the columns that there are", () => {
  assert.deepEqual(
    examples(TABLE).map(({ title }) => title),
    ["A region", "By a public column", "By a private column", "The plan first"],
  );
  const bare = { name: "t", columns: [column("smoker", "boolean"), column("day", "date", { private: false })] };
  const texts = examples(bare).map(({ sql }) => sql.replaceAll("\n", " "));
  assert.equal(texts[0], "SELECT COUNT(*) FROM t WHERE smoker = TRUE");
  assert.equal(texts.length, 3);
});

test("groups of an ordered private column are left in its order, those of labels come by size", () => {
  const grouped = (ordered) => {
    const columns = [column("mood", "text", { labels: ["low", "fair", "good"], ordered })];
    return examples({ name: "t", columns })[1].sql.replaceAll("\n", " ");
  };
  assert.equal(grouped(true), "SELECT mood, COUNT(*) FROM t GROUP BY mood");
  assert.equal(grouped(false), "SELECT mood, COUNT(*) FROM t GROUP BY mood ORDER BY 2 DESC");
});
