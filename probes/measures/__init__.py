"""The probes of ``synthlang probe``, a file or a folder each.

base.py has the base class of their settings, table.py lists them.
"""
