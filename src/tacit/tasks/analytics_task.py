"""The task `analytics`: private columns beside public ones, asked with SQL and answered query by query."""

from math import sqrt

from tacit.core.mechanism import Mechanism
from tacit.device.budget import Budget
from tacit.device.domain import Domain
from tacit.errors import InvalidSpec
from tacit.tasks.task import Answer, Asked, Forecast, Part, Task, Together

NAME = "analytics"
_RULE = "analytics: questions of this task come with public rows and are asked with SQL; state rows in the draft"


def _plan(domain: Domain, budget: Budget, n: int) -> Mechanism:
    del domain, budget, n
    raise InvalidSpec(_RULE)


def _plan_together(asked: Asked, budget: Budget, n: int, k: int) -> Mechanism:
    del asked, budget, n, k
    raise InvalidSpec(_RULE)


def _answer(domain: Domain, part: Part) -> Answer:
    del domain, part
    raise InvalidSpec(_RULE)


def _forecast(domain: Domain, mechanism: Mechanism, n: int) -> Forecast:
    return _forecast_together(Asked(("value",), (domain,)), mechanism, n, 1)


def _forecast_together(asked: Asked, mechanism: Mechanism, n: int, k: int) -> Forecast:
    """The typical error of a share, over random conditions on one private column and on two."""
    del k
    # The engine of SQL is loaded only where it is used.
    from tacit.tasks.analytics.documents import default_workload, design_of, table_schema
    from tacit.tasks.analytics.terms import expected_variance

    schema = table_schema(asked.names, asked.domains, "t")
    design, workload = design_of(mechanism, schema), default_workload(schema)
    variance = sum(expected_variance(design, region) for region in workload) / len(workload)
    of = "the share of the rows that a condition on private columns selects"
    why = f"levels are asked by {design.method}; EXPLAIN says how precise a query will be"
    return Forecast(sqrt(variance / n), of, why)


ANALYTICS = Task(NAME, _plan, _answer, _forecast, together=Together(_plan_together, _forecast_together))
