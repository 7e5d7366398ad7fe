"""Pages and tables in Markdown."""

from collections.abc import Iterable
from pathlib import Path


def fill(template: Path, **values: str | float | Iterable[str]) -> str:
    """Return the text of a template with `values` in its braces; lines are joined."""
    texts = {
        name: value if isinstance(value, str | float | int) else "\n".join(value)
        for name, value in values.items()
    }
    return template.read_text(encoding="utf-8").format(**texts)


def table_row(*cells: object) -> str:
    """Return a row of a table."""
    return f"| {' | '.join(str(cell) for cell in cells)} |"
