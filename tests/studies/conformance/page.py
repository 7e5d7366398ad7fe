"""docs/conformance.md: its text is page.md; its tables are of counts."""

from pathlib import Path

from tests.studies.conformance.counting import Counts, Found, honest_codes, mutant_code
from tests.studies.conformance.table import alarms_of, table
from tests.studies.conformance.tallies import current

TEMPLATE = Path(__file__).with_name("page.md")


def page(counts: Counts) -> str:
    """Return the page in Markdown; which counts are of earlier code follows from the code as it is."""
    code, codes = mutant_code(), honest_codes(tally.name for tally in counts.honest)
    old = sum(found.code != code for found in counts.mutants)
    return TEMPLATE.read_text(encoding="utf-8").format(
        mutants=len(counts.mutants),
        caught=sum(bool(found.caught_by) for found in counts.mutants),
        old=f", {old} of them by earlier code" if old else "",
        table="\n".join(_mutant(found) for found in counts.mutants),
        alarms=alarms_of(current(counts.honest, codes)),
        honest=table(counts.honest, codes),
    )


def read_counts(file: Path) -> Counts:
    """Return the counts in a file; none if there is no such file."""
    return Counts.model_validate_json(file.read_bytes()) if file.exists() else Counts()


def _mutant(found: Found) -> str:
    caught = ", ".join(f"`{test}`" for test in found.caught_by) or "**not found**"
    return f"| {found.mutant} | {found.fault} | {caught} |"
