"""The database itself rejects that an audit entry is changed or removed, whoever asks for it."""

from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps

MESSAGE = "An audit entry is never changed or removed."
TABLE = "audit_auditentry"
MAKE = {
    "postgresql": [
        f"""CREATE FUNCTION audit_append_only() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN RAISE EXCEPTION '{MESSAGE}' USING ERRCODE = 'integrity_constraint_violation'; END $$""",
        f"""CREATE TRIGGER audit_append_only BEFORE UPDATE OR DELETE ON {TABLE}
        FOR EACH ROW EXECUTE FUNCTION audit_append_only()""",
    ],
    "sqlite": [
        f"""CREATE TRIGGER audit_never_changed BEFORE UPDATE ON {TABLE}
        BEGIN SELECT RAISE(ABORT, '{MESSAGE}'); END""",
        f"""CREATE TRIGGER audit_never_removed BEFORE DELETE ON {TABLE}
        BEGIN SELECT RAISE(ABORT, '{MESSAGE}'); END""",
    ],
}
REMOVE = {
    "postgresql": [f"DROP TRIGGER audit_append_only ON {TABLE}", "DROP FUNCTION audit_append_only()"],
    "sqlite": ["DROP TRIGGER audit_never_changed", "DROP TRIGGER audit_never_removed"],
}


def make_triggers(apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Create the triggers."""
    for statement in MAKE[schema_editor.connection.vendor]:
        schema_editor.execute(statement)


def remove_triggers(apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Remove them."""
    for statement in REMOVE[schema_editor.connection.vendor]:
        schema_editor.execute(statement)


class Migration(migrations.Migration):
    dependencies = [("audit", "0001_initial")]

    operations = [migrations.RunPython(make_triggers, remove_triggers)]
