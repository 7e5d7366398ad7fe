"""Runs of earlier versions: their first downloads count as logged, and their bytes are those of the log."""

from typing import Any

from django.db import migrations

BATCH = 200


def fill(apps: Any, editor: Any) -> None:
    """Give every submitted run the rule that it was counted by, and the bytes that its log says were sent."""
    runs = apps.get_model("submissions", "Run").objects.using(editor.connection.alias)
    for run in runs.exclude(rules={}).order_by("pk").iterator(BATCH):
        run.rules = {**run.rules, "first_download": "counted"}
        run.results, run.pending = (
            found.model_copy(update={"bytes_sent": found.bytes_total}) for found in (run.results, run.pending)
        )
        run.save(update_fields=["rules", "results", "pending"])


def empty(apps: Any, editor: Any) -> None:
    """Take the rule away, which an earlier version rejects; it ignores the bytes."""
    runs = apps.get_model("submissions", "Run").objects.using(editor.connection.alias)
    for run in runs.exclude(rules={}).order_by("pk").iterator(BATCH):
        run.rules = {name: value for name, value in run.rules.items() if name != "first_download"}
        run.save(update_fields=["rules"])


class Migration(migrations.Migration):
    dependencies = [("submissions", "0010_counted_bytes")]

    operations = [migrations.RunPython(fill, empty)]
