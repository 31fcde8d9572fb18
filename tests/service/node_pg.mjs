// Asks a collector by node-postgres: parameters of every kind, types of answers, and a refusal.
import { createRequire } from "node:module";
import process from "node:process";

const require = createRequire(`${process.argv[2]}/`);
const { Client } = require("pg");
const client = new Client({ connectionString: process.env.TACIT_ADDRESS });
await client.connect();
const counted = await client.query(
  "SELECT COUNT(*)::int AS n FROM people WHERE os = ANY($1) AND joined >= $2 AND purchases < $3 AND paying = $4",
  [["ios", "win"], "2030-01-02", 3, false],
);
const grouped = await client.query(
  "SELECT date_trunc('day', joined) AS day, COUNT(*) AS n FROM (SELECT * FROM people) AS v GROUP BY 1 ORDER BY 1",
);
const refused = await client.query("SELECT MAX(age) FROM people").catch((error) => error.code);
await client.end();
const days = grouped.rows.map(({ day, n }) => [day.toISOString().slice(0, 10), n]);
console.log(JSON.stringify({ n: counted.rows[0].n, days, refused }));
