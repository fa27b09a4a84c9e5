"""The downstream tasks. ``base.py`` has the base class of a task, and ``entry.py`` and ``table.py`` list the tasks."""
