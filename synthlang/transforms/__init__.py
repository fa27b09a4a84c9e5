"""The transforms. ``base.py`` has their base class, and ``table.py`` lists all of them."""
