"""Tables in the terminal."""

import sys

from rich.console import Console
from rich.markup import escape
from rich.table import Table


def show(title, columns, rows):
    """Print a table; 160 characters wide where the output is not a terminal."""
    table = Table(title=title, title_justify="left")
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*map(escape, row))
    Console(width=None if sys.stdout.isatty() else 160).print(table)
