from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("liveness", "0002_outages_and_notices")]

    operations = [
        migrations.AddField(
            model_name="outage",
            name="waited",
            field=models.JSONField(blank=True, editable=False, null=True),
        ),
    ]
