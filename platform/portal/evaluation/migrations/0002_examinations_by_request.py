"""An examination is a row from its request on, and every level's report has one form: its findings in an envelope."""

from typing import Any

import django.utils.timezone
from django.db import migrations, models

BATCH = 200


def enclose(report: dict[str, Any], identity: dict[str, Any]) -> dict[str, Any]:
    """Return the report of an earlier version, which had no envelope, as it is stored from now on."""
    envelope = {"seconds": report["seconds"], "identity": identity, "problems": report.get("problems", [])}
    findings = {name: value for name, value in report.items() if name not in {"seconds", "problems"}}
    return {**envelope, "findings": findings}


def convert(apps: Any, editor: Any) -> None:
    """Give every examination, all of which have ended, its state and its report in an envelope."""
    examinations = apps.get_model("evaluation", "Examination").objects.using(editor.connection.alias)
    rows = []
    for row in examinations.order_by("pk").iterator(BATCH):
        row.state = "passed" if row.passed else "failed"
        row.requested_at = row.finished_at
        row.report = enclose(row.report, row.identity)
        rows.append(row)
    examinations.bulk_update(rows, ["state", "requested_at", "report"], batch_size=BATCH)


class Migration(migrations.Migration):
    dependencies = [("evaluation", "0001_initial")]

    operations = [
        migrations.RenameField("examination", "at", "finished_at"),
        migrations.AlterField("examination", "finished_at", models.DateTimeField(blank=True, null=True)),
        migrations.AddField(
            "examination", "requested_at", models.DateTimeField(default=django.utils.timezone.now)
        ),
        migrations.AddField(
            "examination",
            "state",
            models.CharField(
                choices=[
                    ("queued", "queued"),
                    ("running", "running"),
                    ("passed", "passed"),
                    ("failed", "not passed"),
                    ("broken", "broken"),
                    ("canceled", "canceled"),
                ],
                default="queued",
                max_length=10,
            ),
        ),
        migrations.AddField(
            "examination",
            "machine",
            models.CharField(blank=True, default="", help_text="The machine that runs the examination.", max_length=200),
            preserve_default=False,
        ),
        migrations.AddField(
            "examination",
            "heartbeat_at",
            models.DateTimeField(blank=True, help_text="The machine's last heartbeat.", null=True),
        ),
        migrations.AddField(
            "examination",
            "progress",
            models.CharField(blank=True, default="", max_length=200),
            preserve_default=False,
        ),
        migrations.AddField(
            "examination",
            "reason",
            models.TextField(blank=True, default="", help_text="Why the examination is broken."),
            preserve_default=False,
        ),
        migrations.AlterField("examination", "report", models.JSONField(blank=True, null=True)),
        migrations.AlterField(
            "examination",
            "level",
            models.PositiveSmallIntegerField(
                choices=[(1, "L1 conforming"), (2, "L2 replayed"), (3, "L3 rerun")],
                help_text="The level that the run gets if it passes.",
            ),
        ),
        migrations.AlterModelOptions("examination", {"ordering": ["-requested_at", "-id"]}),
        migrations.RunPython(convert),
        migrations.RemoveField("examination", "passed"),
        migrations.RemoveField("examination", "command"),
        migrations.RemoveField("examination", "identity"),
        migrations.AddConstraint(
            "examination",
            models.CheckConstraint(
                condition=models.Q(
                    finished_at__isnull=False, report__isnull=False, state__in=["passed", "failed"]
                )
                | (~models.Q(state__in=["passed", "failed"]) & models.Q(report__isnull=True)),
                name="examinations_that_ended_with_a_verdict_have_a_report",
            ),
        ),
        migrations.AddConstraint(
            "examination",
            models.UniqueConstraint(
                condition=models.Q(state__in=["queued", "running"]),
                fields=("run",),
                name="one_active_examination_per_run",
            ),
        ),
    ]
