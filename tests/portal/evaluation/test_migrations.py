"""Rows that an earlier version stored are read by this one, on both back ends."""

import json
import os
import subprocess
import sys
from pathlib import Path
from uuid import uuid4

import psycopg2
import pytest

# Examinations as version 0001 stored them: a command's report without an envelope, the identity in a column beside it.
SCRIPT = """
import json
import django
django.setup()
from django.core.management import call_command
from django.db import connection
from django.utils import timezone

call_command("migrate", "evaluation", "0001", verbosity=0)
for app in ("audit", "submissions", "challenge", "accounts", "teams"):
    call_command("migrate", app, verbosity=0)
from tests.portal.factories import make_run
test = {"id": "x", "measures": "y", "verdict": "failed", "note": ""}
scores = {"anls": 0.5, "accuracy": 0.4, "bytes_total": 100, "epsilon": None}
compared = {"name": "ANLS", "submitted": 0.5, "repeated": 0.5, "allowed": 0.1, "basis": "chance"}
reports = {
    "conformance": (1, {"unit": "provider", "seed": 7, "tests": [test], "problems": []}),
    "replay": (2, {"challenge": "ab", "round": 3, "exact": True, "problems": []}),
    "rerun": (3, {"submitted": scores, "repeats": [scores], "comparisons": [compared], "other_terms": [],
                  "problems": []}),
}
identity = {"kit_version": "1", "code_sha256": "c", "settings_sha256": "s", "method_sha256": "", "is_recorded": None}
run = make_run(state="scored")
with connection.cursor() as cursor:
    for command, (level, report) in reports.items():
        report = {"kind": command, "seconds": 1.5, **report}
        cursor.execute(
            "INSERT INTO evaluation_examination (run_id, level, command, passed, report, identity, at)"
            " VALUES (%s, %s, %s, %s, %s, %s, %s)",
            [run.pk if connection.vendor != "sqlite" else run.pk.hex, level, command, command != "conformance",
             json.dumps(report), json.dumps(identity), timezone.now()],
        )
call_command("migrate", verbosity=0)
from portal.evaluation.models import Examination
print(json.dumps([
    [one.level, one.state, one.found.in_words, one.found.identity.kit_version, one.found.seconds,
     one.finished_at == one.requested_at]
    for one in Examination.objects.order_by("level")
]))
"""


def run_script(database: str, home: Path) -> list[list[object]]:
    ended = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        env={
            **os.environ,
            "DJANGO_SETTINGS_MODULE": "portal.settings",
            "PFL_DATABASE_URL": database,
            "PFL_HOME": str(home),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    found: list[list[object]] = json.loads(ended.stdout.splitlines()[-1])
    return found


@pytest.mark.parametrize("back_end", ["sqlite", "postgres"])
def test_reports_of_an_earlier_version_are_read_as_before(tmp_path: Path, back_end: str) -> None:
    url = f"sqlite:///{tmp_path}/db.sqlite3"
    if back_end == "postgres":
        server = os.environ["PFL_TEST_POSTGRES_URL"].rsplit("/", 1)[0]
        url = f"{server}/earlier_{uuid4().hex[:8]}"
        execute(server, f"CREATE DATABASE {url.rsplit('/', 1)[1]}")
    try:
        found = run_script(url, tmp_path)
    finally:
        if back_end == "postgres":
            execute(server, f"DROP DATABASE {url.rsplit('/', 1)[1]} WITH (FORCE)")
    words = [row[2] for row in found]
    assert words[0] == "The method doesn't behave as claimed: x."
    assert str(words[1]).startswith(
        "1 round trained again, drawn after the record: 3. All agree, bit for bit."
    )
    assert str(words[2]).startswith("Trained one more time. ANLS: 0.5 submitted, 0.5 repeated")
    assert [row[:2] + row[3:] for row in found] == [
        [1, "failed", "1", 1.5, True],
        [2, "passed", "1", 1.5, True],
        [3, "passed", "1", 1.5, True],
    ]


def execute(server: str, statement: str) -> None:
    connection = psycopg2.connect(f"{server}/postgres")
    connection.autocommit = True
    with connection.cursor() as cursor:
        cursor.execute(statement)
    connection.close()
