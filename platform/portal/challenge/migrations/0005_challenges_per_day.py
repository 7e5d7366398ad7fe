import django.core.validators
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("challenge", "0004_plain_help_texts")]

    operations = [
        migrations.AddField(
            model_name="track",
            name="challenges_per_day",
            field=models.PositiveSmallIntegerField(
                default=15,
                help_text="Only for tracks ranked by ANLS: how many new training records a team can upload in any 24 hours. The site draws a challenge for each.",
                validators=[django.core.validators.MinValueValidator(1)],
            ),
        ),
    ]
