"""Results that were stored before ranks depended on them: which runs are unbound, failed examinations, and decimals."""

from typing import Any

from django.db import migrations

from evaluator.messages.examinations import Report
from evaluator.messages.jobs import Outcome, Step, TrustLevel
from evaluator.messages.results import supported_decimals, unbound_by

BATCH = 200


def fill(apps: Any, editor: Any) -> None:
    """Give every scored run what follows from its checks, its newest replay or rerun, and its test set's size."""
    alias = editor.connection.alias
    runs = apps.get_model("submissions", "Run").objects.using(alias)
    for run in runs.filter(scored_at__isnull=False).order_by("pk").iterator(BATCH):
        found = _of_checks(run) | _of_examinations(apps, alias, run) | _of_scoring(apps, alias, run)
        if found:
            run.results = run.results.model_copy(update=found)
            run.save(update_fields=["results"])


def _of_checks(run: Any) -> dict[str, Any]:
    unbound = unbound_by(run.results.checks) if run.rules.get("privacy") else ""
    return {"unbound": unbound} if unbound else {}


def _of_examinations(apps: Any, alias: str, run: Any) -> dict[str, Any]:
    examinations = apps.get_model("evaluation", "Examination").objects.using(alias)
    compared = examinations.filter(run=run, level__gte=TrustLevel.REPLAYED, report__isnull=False)
    newest = compared.order_by("finished_at", "pk").last()
    if newest is None or newest.state == "passed":
        return {}
    because = Report.model_validate(newest.report).in_words
    return {"failed_level": TrustLevel(newest.level), "failed_because": because}


def _of_scoring(apps: Any, alias: str, run: Any) -> dict[str, Any]:
    reports = apps.get_model("evaluation", "StepReport").objects.using(alias)
    scored = reports.filter(evaluation__run=run, step=Step.SCORING, outcome=Outcome.PASSED)
    last = scored.filter(evaluation__state="passed").order_by("evaluation__attempt").last()
    questions = (last.result or {}).get("questions") if last else None
    return {"decimals": supported_decimals(questions)} if questions else {}


def leave(_apps: Any, _editor: Any) -> None:
    """Keep the results, in which an earlier version ignores what it doesn't know."""


class Migration(migrations.Migration):
    dependencies = [
        ("evaluation", "0002_examinations_by_request"),
        ("submissions", "0006_unbound_runs"),
    ]

    operations = [migrations.RunPython(fill, leave)]
