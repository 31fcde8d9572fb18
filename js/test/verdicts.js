/**
 * What this client makes of documents, for `tests/vectors/test_clients_agree.py`; not a test itself. Reads lines of JSON
 * text from the standard input, each holding the text of a document, and writes for each the id or the name of the error.
 */

import { readFileSync } from "node:fs";

const { Collection } = await import(process.argv[2]);

for (const line of readFileSync(0, "utf8").split("\n").filter(Boolean)) {
  const verdict = await Collection.read(JSON.parse(line)).then(({ id }) => id, ({ name }) => name);
  console.log(verdict);
}
