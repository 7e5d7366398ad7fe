"""A run token knows when its challenge was drawn, which training took it, and why it came to nothing."""

from typing import Any

from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor


def date_challenges(apps: Any, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Date the challenges that were drawn so far by the audit log, or else by the token."""
    entries = apps.get_model("audit", "AuditEntry").objects.filter(action="run_token.challenged")
    drawn = dict(entries.values_list("object_id", "at"))
    tokens = apps.get_model("submissions", "RunToken").objects
    for token in tokens.exclude(challenge=""):
        token.challenged_at = drawn.get(str(token.pk), token.issued_at)
        token.save(update_fields=["challenged_at"])
    # PostgreSQL changes no table for which a deferred check is still due.
    schema_editor.connection.check_constraints()


class Migration(migrations.Migration):
    dependencies = [("audit", "0001_initial"), ("submissions", "0004_plain_help_texts")]

    operations = [
        migrations.AddField(
            model_name="runtoken",
            name="training",
            field=models.CharField(blank=True, default="", max_length=32),
            preserve_default=False,
        ),
        migrations.AddField(
            model_name="runtoken",
            name="challenged_at",
            field=models.DateTimeField(blank=True, help_text="When its challenge was drawn.", null=True),
        ),
        migrations.AddField(
            model_name="runtoken",
            name="explanation",
            field=models.TextField(
                blank=True,
                default="",
                help_text="Why there is no run whose ε was recomputed. Visible to the organizers and the reviewers of later runs.",
                max_length=1000,
            ),
            preserve_default=False,
        ),
        migrations.RunPython(date_challenges, migrations.RunPython.noop),
        migrations.RemoveConstraint(model_name="runtoken", name="a_record_has_a_challenge"),
        migrations.AddConstraint(
            model_name="runtoken",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(
                        ("challenge", ""),
                        ("challenged_at__isnull", True),
                        ("record_sha256", ""),
                        ("run__isnull", True),
                    ),
                    models.Q(
                        ("record_sha256", ""),
                        ("challenge", ""),
                        ("challenged_at__isnull", True),
                        _connector="OR",
                        _negated=True,
                    ),
                    _connector="OR",
                ),
                name="a_record_has_a_challenge",
            ),
        ),
    ]
