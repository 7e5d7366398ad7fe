from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("evaluation", "0004_inventories")]

    operations = [
        migrations.AddField(
            model_name="inventory",
            name="leakage_sets",
            field=models.JSONField(default=dict),
        ),
    ]
