"""The transforms, one file for each kind: base.py has their base class, table.py lists all of them."""
