"""The downstream tasks. ``base.py`` has their base class, and ``entry.py`` and ``table.py`` list them."""
