"""The probes of ``synthlang probe``. Each probe is a file or a folder.

``base.py`` has the base class of their settings, and ``table.py`` lists them.
"""
