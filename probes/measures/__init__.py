"""The probes of ``synthlang probe``, a file or folder each.

base.py says what the settings of a probe say of it, table.py has all of them.
"""
