"""Pending artifacts become rows of the artifacts' own table, in a state of their own."""

from typing import Any

import django.utils.timezone
from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor



def move_pending_in(apps: Any, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Give every artifact its state, and every pending one a row."""
    artifact = apps.get_model("submissions", "Artifact")
    artifact.objects.filter(superseded_at__isnull=False).update(state="superseded")
    pending = apps.get_model("submissions", "PendingArtifact")
    artifact.objects.bulk_create(
        artifact(**_place(row), state="pending", created_at=row.upload.created_at)
        for row in pending.objects.select_related("upload")
    )
    _check_keys(schema_editor)


def move_pending_out(apps: Any, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Give the pending artifacts a table of their own again."""
    rows = apps.get_model("submissions", "Artifact").objects.filter(state="pending")
    pending = apps.get_model("submissions", "PendingArtifact")
    pending.objects.bulk_create(pending(**_place(row)) for row in rows)
    rows.delete()
    _check_keys(schema_editor)


def _place(row: Any) -> dict[str, Any]:
    return {
        "submission_id": row.submission_id,
        "run_id": row.run_id,
        "kind": row.kind,
        "upload_id": row.upload_id,
    }


def _check_keys(schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Have deferred checks of foreign keys made now: PostgreSQL changes no table for which one is still due."""
    schema_editor.connection.check_constraints()


class Migration(migrations.Migration):
    dependencies = [("submissions", "0001_initial")]

    operations = [
        migrations.AddField(
            model_name="artifact",
            name="state",
            field=models.CharField(
                choices=[("pending", "pending"), ("attached", "attached"), ("superseded", "superseded")],
                default="attached",
                max_length=10,
            ),
        ),
        migrations.AlterField(
            model_name="artifact",
            name="state",
            field=models.CharField(
                choices=[("pending", "pending"), ("attached", "attached"), ("superseded", "superseded")],
                default="pending",
                max_length=10,
            ),
        ),
        migrations.AlterField(
            model_name="artifact",
            name="created_at",
            field=models.DateTimeField(
                default=django.utils.timezone.now,
                help_text="When the file was attached or, while it is pending, when its upload began.",
            ),
        ),
        migrations.RemoveConstraint(model_name="artifact", name="one_artifact_of_a_kind_for_a_run"),
        migrations.RemoveConstraint(model_name="artifact", name="one_newest_proof_of_a_submission"),
        migrations.RemoveConstraint(model_name="artifact", name="versions_of_a_proof_are_numbered"),
        migrations.RunPython(move_pending_in, move_pending_out),
        migrations.AddConstraint(
            model_name="artifact",
            constraint=models.UniqueConstraint(
                condition=models.Q(("state", "attached")),
                fields=("run", "kind"),
                name="one_artifact_of_a_kind_for_a_run",
            ),
        ),
        migrations.AddConstraint(
            model_name="artifact",
            constraint=models.UniqueConstraint(
                condition=models.Q(("run__isnull", True), ("state", "attached")),
                fields=("submission", "kind"),
                name="one_newest_proof_of_a_submission",
            ),
        ),
        migrations.AddConstraint(
            model_name="artifact",
            constraint=models.UniqueConstraint(
                condition=models.Q(("run__isnull", True), models.Q(("state", "pending"), _negated=True)),
                fields=("submission", "kind", "version"),
                name="versions_of_a_proof_are_numbered",
            ),
        ),
        migrations.AddConstraint(
            model_name="artifact",
            constraint=models.UniqueConstraint(
                condition=models.Q(("state", "pending")),
                fields=("upload",),
                name="one_pending_artifact_of_an_upload",
            ),
        ),
        migrations.AddConstraint(
            model_name="artifact",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("state", "superseded"), ("superseded_at__isnull", False)),
                    models.Q(("state__in", ["pending", "attached"]), ("superseded_at__isnull", True)),
                    _connector="OR",
                ),
                name="superseded_artifacts_have_a_time",
            ),
        ),
        migrations.DeleteModel(name="PendingArtifact"),
    ]
