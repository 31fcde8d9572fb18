"""The task `analytics`: private columns beside public ones, asked with SQL and answered query by query.

The functions import the SQL engine when they are called, because it takes long to load and few collections have rows.
"""

from functools import lru_cache
from math import sqrt

from tacit.core.mechanism import Mechanism
from tacit.device.numbers.budget import Epsilon
from tacit.tasks.task import Forecast, JointQuestions, PublicRows, RowsTask


# A draft is planned when it is saved, shown and published, each time over dozens of designs.
@lru_cache(maxsize=16)
def _plan(asked: JointQuestions, rows: PublicRows, epsilon: Epsilon, n: int) -> tuple[str, Mechanism]:
    from tacit.sql.documents import plan_table, table_schema

    schema = table_schema(asked.names, asked.domains, rows.table)
    return plan_table(schema, rows.columns, epsilon.text, n, rows.queries)


def _forecast(asked: JointQuestions, mechanism: Mechanism, n: int) -> Forecast:
    """Return the typical standard error of a share, over random conditions on one private column and on two."""
    from tacit.sql.documents import default_workload, design_of, table_schema
    from tacit.sql.engine.terms import expected_variance

    schema = table_schema(asked.names, asked.domains, "t")
    design, workload = design_of(mechanism, schema), default_workload(schema)
    # A table is planned for any condition: the forecast is the mean variance over a default workload of them.
    variance = sum(expected_variance(design, region) for region in workload) / len(workload)
    of = "the share of the rows that a condition on private columns selects"
    why = f"levels are asked by {design.method}; EXPLAIN says how precise a query will be"
    return Forecast(sqrt(variance / n), of, why)


ANALYTICS = RowsTask("analytics", _plan, _forecast)
