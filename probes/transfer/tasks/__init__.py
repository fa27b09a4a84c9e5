"""The downstream tasks, one file each; base.py says what a task is, entry.py has ours, table.py all of them."""
