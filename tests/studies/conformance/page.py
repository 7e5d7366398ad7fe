"""docs/conformance.md: its text is page.md; its tables are of counts."""

from pathlib import Path

from tests.studies.conformance.counting import Counts, Found, honest_codes, mutant_code
from tests.studies.markdown import fill, table_row
from tests.studies.mutants.catalog import CATALOG, LIMITS
from tests.studies.tallies import alarms_of, current, table


def page(counts: Counts) -> str:
    """Return the page in Markdown; which counts are of earlier code follows from the code as it is."""
    code, codes = mutant_code(), honest_codes(tally.name for tally in counts.honest)
    old = sum(found.code != code for found in counts.mutants)
    return fill(
        Path(__file__).with_name("page.md"),
        mutants=len(counts.mutants),
        caught=sum(bool(found.caught_by) for found in counts.mutants),
        known=sum(bool(mutant.limit) for mutant in CATALOG),
        limits=[
            f"- `{mutant.name}`: {mutant.fault}. Reason: {mutant.limit}."
            for mutant in CATALOG
            if mutant.limit
        ],
        old=f" ({old} were counted with earlier code)" if old else "",
        table=map(_mutant, counts.mutants),
        alarms=alarms_of(current(counts.honest, codes)),
        honest=table(counts.honest, codes),
    )


def _mutant(found: Found) -> str:
    missed = "a [limit](#limits)" if found.mutant in LIMITS else "**not found**"
    return table_row(found.mutant, found.fault, ", ".join(f"`{test}`" for test in found.caught_by) or missed)
