from django.apps.registry import Apps
from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor


def release_tokens(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Take the tokens from runs for practice; their releases stay."""
    tokens = apps.get_model('submissions', 'RunToken').objects
    tokens.filter(run__submission__practice=True).update(run=None)


class Migration(migrations.Migration):

    dependencies = [
        ('submissions', '0017_index_challenges_per_track'),
    ]

    operations = [
        migrations.RunPython(release_tokens, migrations.RunPython.noop),
    ]
