import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("uploads", "0001_initial")]

    operations = [
        migrations.AlterField(
            model_name="upload",
            name="team",
            field=models.ForeignKey(
                null=True, on_delete=django.db.models.deletion.CASCADE, related_name="uploads", to="teams.team"
            ),
        ),
    ]
