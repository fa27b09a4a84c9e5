"""The probes of the command ``synthlang probe``, one folder each.

``base.py`` has the base class of the settings of a probe, and ``table.py`` lists the probes.
"""
