"""The first line of a stored training record: what is trained and how it is protected, as the team declares it."""

from docvqa_site.uploads.stores import current_store
from evaluator.errors import ProblemError
from evaluator.records import reading
from evaluator.records.lines import RunLine


def first_line(store_key: str) -> RunLine | None:
    """Return the first line of a stored record; None where it can't be read, which isn't reported here."""
    try:
        with current_store().open(store_key) as file:
            line, newline, _ = file.read(reading.MAX_RUN_LINE_BYTES).partition(b"\n")
        return reading.read_first_line(line + newline)
    except (FileNotFoundError, ProblemError):
        return None
