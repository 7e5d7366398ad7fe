"""Training records and annexes as far as the site looks into them: their first lines."""

from io import BytesIO

from evaluator.records.annex import AnnexLine
from evaluator.records.canonical_lines import canonical, values_of
from evaluator.records.writing import RecordWriter
from tests.evaluator.records.factories import run_line


def record_of(token, rest=b"the rest"):
    """A record that carries this token."""
    file = BytesIO()
    RecordWriter(file, run_line(run_token=token))
    return file.getvalue() + rest


def annex_for(challenge, rest=b"the rest"):
    """An annex that answers this challenge."""
    return canonical(values_of(AnnexLine(run_token=None, challenge=challenge))) + b"\n" + rest
