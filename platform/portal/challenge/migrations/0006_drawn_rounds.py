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
                help_text="ANLS ranking: how many rounds of a replayable run are drawn for a replay, which covers the "
                "last round as well. A draft whose rounds were opened before a change needs a new training.",
            ),
        ),
    ]
