"""The list of all tasks, in one explicit tuple; nothing registers itself by being imported."""

from tacit.device.domains.domain import Domain
from tacit.errors import InvalidSpec
from tacit.tasks.histogram import HISTOGRAM
from tacit.tasks.hitters.task import HEAVY_HITTERS
from tacit.tasks.itemsets.task import ITEMS, ITEMSETS
from tacit.tasks.marginals.task import MARGINALS
from tacit.tasks.mean import MEAN
from tacit.tasks.ranges.means import RANGE_MEANS
from tacit.tasks.ranges.task import RANGES
from tacit.tasks.rows import ANALYTICS
from tacit.tasks.shares import SHARES
from tacit.tasks.task import QuestionTask, Task, TaskQuery

TASKS: tuple[Task, ...] = (
    HISTOGRAM,
    SHARES,
    MEAN,
    RANGES,
    RANGE_MEANS,
    ITEMS,
    ITEMSETS,
    HEAVY_HITTERS,
    MARGINALS,
    ANALYTICS,
)
"""Every task a question may name."""


def find_task(name: str, tasks: tuple[Task, ...] = TASKS) -> Task:
    """Return the task of a name; InvalidSpec lists the known ones if there is none."""
    for task in tasks:
        if task.name == name:
            return task
    raise InvalidSpec(f"task is {str(name)[:40]!r}, must be one of {', '.join(task.name for task in tasks)}")


def queries_of(task: Task) -> tuple[TaskQuery[Domain], ...]:
    """Return the queries about one question; only `QuestionTask` has any, others answer by tables, SQL or a plan."""
    return task.queries if isinstance(task, QuestionTask) else ()
