"""Tables of a report for the terminal."""

from __future__ import annotations

from rich.box import SIMPLE_HEAD
from rich.markup import escape
from rich.table import Table as ConsoleTable

from probes.report.numbers import entry_text
from probes.report.page import Table

SHORT = 20
"""Largest length of a header, in characters, for which a column of numbers is not wrapped."""


def console_table(table: Table) -> ConsoleTable:
    """Return a table for the terminal, with all of its rows and columns.

    Columns are so close together that most tables fit into 80 characters.
    """
    shown = ConsoleTable(
        title=escape(table.caption), box=SIMPLE_HEAD, show_edge=False, pad_edge=False, collapse_padding=True
    )
    for place, name in enumerate(table.header):
        is_number = place >= table.texts
        shown.add_column(
            escape(name), justify="right" if is_number else "left", no_wrap=is_number and len(name) <= SHORT
        )
    for row in table.rows:
        shown.add_row(*(escape(entry_text(entry, table.digits)) for entry in row))
    return shown
