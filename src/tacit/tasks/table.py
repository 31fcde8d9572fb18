"""The one explicit tuple of tasks; nothing registers itself by being imported."""

from tacit.errors import InvalidSpec
from tacit.tasks.analytics_task import ANALYTICS
from tacit.tasks.heavy_hitters_task import HEAVY_HITTERS
from tacit.tasks.histogram import HISTOGRAM
from tacit.tasks.itemset_task import ITEMS, ITEMSETS
from tacit.tasks.marginal_task import MARGINALS
from tacit.tasks.mean import MEAN
from tacit.tasks.range_means import RANGE_MEANS
from tacit.tasks.range_task import RANGES
from tacit.tasks.task import Task

TASKS: tuple[Task, ...] = (HISTOGRAM, MEAN, RANGES, RANGE_MEANS, ITEMS, ITEMSETS, HEAVY_HITTERS, MARGINALS, ANALYTICS)
"""Every task a question may name."""


def find_task(name: str, tasks: tuple[Task, ...] = TASKS) -> Task:
    """The task of a name, or InvalidSpec naming what is known."""
    for task in tasks:
        if task.name == name:
            return task
    raise InvalidSpec(f"task is {str(name)[:40]!r}, must be one of {', '.join(task.name for task in tasks)}")
