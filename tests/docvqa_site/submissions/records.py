"""Training records that a team of the site signed, and annexes as far as the site looks into them."""

import hashlib
from io import BytesIO

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from docvqa_site.submissions.models import RunToken
from docvqa_site.teams.models import Team
from evaluator.records.annex import AnnexLine
from evaluator.records.canonical_lines import canonical, values_of
from evaluator.records.lines import EndLine
from evaluator.records.signing import public_key_of
from evaluator.records.writing import RecordWriter
from tests.docvqa_site.factories import make_key
from tests.evaluator.records.factories import run_line


def key_of(team: Team) -> Ed25519PrivateKey:
    """A key of the team, which is registered for it."""
    key = Ed25519PrivateKey.from_private_bytes(hashlib.sha256(f"key of team {team.pk}".encode()).digest())
    public_key = public_key_of(key)
    if not team.keys.filter(public_key=public_key).exists():
        make_key(team, public_key=public_key)
    return key


def record_of(token, rest=b"", key=None):
    """A record that carries this token, signed by the team that has it; `rest` makes another record of it."""
    if key is None:
        issued = RunToken.objects.filter(token=token or "").first()
        key = key_of(issued.team) if issued else Ed25519PrivateKey.generate()
    code_sha256 = hashlib.sha256(rest).hexdigest()
    file = BytesIO()
    writer = RecordWriter(file, run_line(run_token=token, rounds=0, code_sha256=code_sha256))
    end = EndLine(
        rounds=0,
        bytes_down=0,
        bytes_up=0,
        checkpoint_sha256="0" * 64,
        annex_body_sha256="0" * 64,
        public_key=public_key_of(key),
    )
    writer.end(end, key)
    return file.getvalue()


def annex_for(challenge, rest=b"the rest"):
    """An annex that answers this challenge."""
    return canonical(values_of(AnnexLine(run_token=None, challenge=challenge))) + b"\n" + rest
