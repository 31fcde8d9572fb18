"""Queries in the shapes that BI tools send, over the table of `pg_people`, each with a plain query of the same answer.

The texts follow the public documentation of every tool: how it quotes names, cuts dates, wraps queries of its users,
asks for the values of a filter, and looks at the columns of a table.
"""

from __future__ import annotations

ALIKE: dict[str, list[tuple[str, str]]] = {
    "superset": [
        (
            "SELECT os AS os, COUNT(*) AS count FROM (SELECT * FROM people WHERE hours > 5) AS virtual_table "
            "WHERE joined >= TO_DATE('2030-01-01', 'YYYY-MM-DD') AND joined < TO_DATE('2030-01-03', 'YYYY-MM-DD') "
            "GROUP BY os ORDER BY count DESC LIMIT 1000",
            "SELECT os, COUNT(*) FROM people WHERE hours > 5 AND joined < '2030-01-03' GROUP BY os ORDER BY 2 DESC",
        ),
        (
            "SELECT DATE_TRUNC('day', joined) AS __timestamp, SUM(hours) AS \"SUM(hours)\" FROM public.people WHERE "
            "joined >= TO_TIMESTAMP('2030-01-02 00:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US') "
            "GROUP BY DATE_TRUNC('day', joined) ORDER BY \"SUM(hours)\" DESC LIMIT 10000",
            "SELECT joined, SUM(hours) FROM people WHERE joined > '2030-01-01' GROUP BY joined ORDER BY 2 DESC",
        ),
        (
            "SELECT sum(purchases)::numeric AS p, CAST(AVG(hours) AS FLOAT) AS h FROM people LIMIT 50000",
            "SELECT SUM(purchases), AVG(hours) FROM people",
        ),
    ],
    "metabase": [
        (
            'SELECT "public"."people"."os" AS "os", COUNT(*) AS "count" FROM "public"."people" WHERE '
            '"public"."people"."paying" = TRUE GROUP BY "public"."people"."os" '
            'ORDER BY "count" DESC, "public"."people"."os" ASC',
            "SELECT os, COUNT(*) FROM people WHERE paying GROUP BY os ORDER BY 2 DESC, 1",
        ),
        (
            'SELECT "source"."os" AS "os", AVG("source"."hours") AS "avg" FROM (SELECT "public"."people"."os" AS "os", '
            '"public"."people"."hours" AS "hours" FROM "public"."people" WHERE "public"."people"."purchases" > 1) AS '
            '"source" GROUP BY "source"."os" ORDER BY "source"."os" ASC',
            "SELECT os, AVG(hours) FROM people WHERE purchases > 1 GROUP BY os ORDER BY os",
        ),
        (
            'SELECT CAST("public"."people"."joined" AS date) AS "joined", COUNT(*) AS "count" FROM "public"."people" '
            'WHERE ("public"."people"."joined" >= timestamp with time zone \'2030-01-01 00:00:00.000Z\') AND '
            '("public"."people"."joined" < timestamp with time zone \'2030-01-03 00:00:00.000Z\') GROUP BY '
            'CAST("public"."people"."joined" AS date) ORDER BY CAST("public"."people"."joined" AS date) ASC',
            "SELECT joined, COUNT(*) FROM people WHERE joined < '2030-01-03' GROUP BY joined ORDER BY joined",
        ),
        (
            "SELECT COUNT(*) AS count FROM people WHERE DATE_TRUNC('month', CAST(joined AS timestamp)) = "
            "DATE_TRUNC('month', CAST('2030-01-17' AS timestamp)) AND (os = 'ios' OR os = 'win')",
            "SELECT COUNT(*) FROM people WHERE os IN ('ios', 'win')",
        ),
    ],
    "grafana": [
        (
            'SELECT floor(extract(epoch from joined)/86400)*86400 AS "time", os AS metric, count(*) AS "people" FROM '
            "people WHERE joined BETWEEN '2030-01-01T00:00:00Z' AND '2030-01-02T23:59:59Z' GROUP BY 1, 2 ORDER BY 1, 2",
            "SELECT extract(epoch from joined), os, COUNT(*) FROM people WHERE joined < '2030-01-03' GROUP BY 1, 2 "
            "ORDER BY 1, 2",
        ),
        (
            "SELECT date_bin('1 days', joined, TIMESTAMP '2001-01-01') AS \"time\", avg(hours) AS value FROM people "
            "WHERE extract(epoch from joined) >= 1893456000 AND extract(epoch from joined) <= 1893542400 GROUP BY 1 "
            "ORDER BY 1",
            "SELECT joined, AVG(hours) FROM people WHERE joined < '2030-01-03' GROUP BY joined ORDER BY joined",
        ),
    ],
    "tableau": [
        (
            'SELECT "people"."os" AS "os", COUNT(1) AS "cnt:people:ok", SUM("people"."hours") AS "sum:hours:ok" FROM '
            '"public"."people" "people" WHERE ("people"."os" IN (\'ios\', \'win\')) GROUP BY 1 HAVING (COUNT(1) > 0)',
            "SELECT os, COUNT(*), SUM(hours) FROM people WHERE os IN ('ios', 'win') GROUP BY os",
        ),
        (
            'SELECT CAST(EXTRACT(YEAR FROM "people"."joined") AS BIGINT) AS "yr:joined:ok", '
            'AVG(CAST("people"."purchases" AS DOUBLE PRECISION)) AS "avg:purchases:ok" FROM "public"."people" "people" '
            'WHERE ("people"."joined" >= (DATE \'2030-01-02\')) GROUP BY 1',
            "SELECT 2030, AVG(purchases) FROM people WHERE joined > '2030-01-01'",
        ),
        (
            'SELECT SUM((CASE WHEN ("people"."paying" = TRUE) THEN 1 ELSE 0 END)) AS "sum:paying:ok" FROM '
            '"public"."people" "people" HAVING (COUNT(1) > 0)',
            "SELECT COUNT(*) FROM people WHERE paying",
        ),
    ],
    "power bi": [
        (
            'select "_"."os", "_"."a0" from (select "rows"."os" as "os", sum("rows"."hours") as "a0" from (select '
            '"_"."os", "_"."hours" from "public"."people" "_" where "_"."purchases" > 2) "rows" group by "os") "_" '
            'where not "_"."a0" is null limit 1000001',
            "SELECT os, SUM(hours) FROM people WHERE purchases > 2 GROUP BY os",
        ),
        (
            'select count(1)::int8 as "C1" from (select "$Table"."os", "$Table"."joined" from "public"."people" '
            '"$Table") "_" where "_"."joined" = timestamp \'2030-01-02 00:00:00\'',
            "SELECT COUNT(*) FROM people WHERE joined = '2030-01-02'",
        ),
    ],
    "private columns": [
        (
            'SELECT "source"."state" AS "state", COUNT(*) AS "count" FROM (SELECT * FROM "public"."people" WHERE '
            '"public"."people"."age" < 40) AS "source" GROUP BY "source"."state" ORDER BY 1',
            "SELECT state, COUNT(*) FROM people WHERE age < 40 GROUP BY state ORDER BY state",
        ),
        (
            "SELECT DATE_TRUNC('month', joined) AS m, AVG(CAST(age AS FLOAT)) AS a FROM people WHERE CAST(state AS "
            "TEXT) = 'CA' GROUP BY DATE_TRUNC('month', joined)",
            "SELECT '2030-01-01', AVG(age) FROM people WHERE state = 'CA'",
        ),
    ],
}
"""Tools, what they send, and a plain query that has the same numbers in the same order."""

VALUES: dict[str, tuple[str, str]] = {
    "superset filter": ("SELECT os AS os FROM public.people GROUP BY os LIMIT 1000", "os"),
    "metabase filter": (
        'SELECT DISTINCT "public"."people"."os" AS "os" FROM "public"."people" ORDER BY "os" ASC LIMIT 1000',
        "os",
    ),
    "tableau domain": (
        'SELECT "people"."joined" AS "joined" FROM "public"."people" "people" GROUP BY 1 ORDER BY 1 ASC NULLS FIRST',
        "joined",
    ),
    "power bi slicer": (
        'select "$Table"."os" as "os" from "public"."people" "$Table" group by "os" order by "os" limit 101',
        "os",
    ),
}
"""Queries for the values of a column, which are those that enough rows hold."""

COLUMNS = (
    "SELECT * FROM (SELECT * FROM people) AS virtual_table LIMIT 0",
    'SELECT * FROM "public"."people" "people" WHERE (1=0)',
    'select * from "public"."people" "$Table" where 1 = 0',
    "SELECT * FROM people WHERE false",
    "SELECT * FROM people FETCH FIRST 0 ROWS ONLY",
)
"""Queries that ask for the columns of a table."""
