"""The annotation tasks."""

from __future__ import annotations

from creperie.annotation.tasks.checks import CHECKS
from creperie.annotation.tasks.performance import PERFORMANCES
from creperie.annotation.tasks.preference import PREFERENCES
from creperie.annotation.tasks.task import StudyTask
from creperie.core import unknown

TASKS = {task.name: task for task in (*CHECKS, *PERFORMANCES, *PREFERENCES)}


def task_named(name: str) -> StudyTask:
    """Return the task with this name.

    >>> task_named("foil-check").words["title"]
    'Foil check'
    """
    if name not in TASKS:
        raise unknown("task", name, TASKS)
    return TASKS[name]
