"""The downstream tasks. ``base.py`` defines a task, and ``entry.py`` and ``table.py`` list the tasks."""
