"""The tasks that people can be given."""

from __future__ import annotations

from creperie.errors import unknown
from creperie.people.tasks.checks import CHECKS
from creperie.people.tasks.performance import PERFORMANCES
from creperie.people.tasks.preference import PREFERENCES
from creperie.people.tasks.task import Task

TASKS = {task.name: task for task in (*CHECKS, *PERFORMANCES, *PREFERENCES)}


def task_named(name: str) -> Task:
    """The task of this name.

    >>> task_named("foil-check").words["title"]
    'Foil check'
    """
    if name not in TASKS:
        raise unknown("task", name, TASKS)
    return TASKS[name]
