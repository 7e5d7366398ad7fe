import django.core.validators
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("challenge", "0005_challenges_per_day")]

    operations = [
        migrations.AddField(
            model_name="track",
            name="drawn_rounds",
            field=models.PositiveSmallIntegerField(
                default=3,
                validators=[django.core.validators.MaxValueValidator(60)],
                help_text="Only for tracks ranked by ANLS: how many rounds of a replayable run are drawn for a replay, in addition to the last round. If a draft's rounds were opened before this number changes, its run must be trained again.",
            ),
        ),
    ]
