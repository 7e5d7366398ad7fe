import docvqa_site.licenses
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('downloads', '0001_squashed_0004'),
    ]

    operations = [
        migrations.AlterField(
            model_name='download',
            name='license',
            field=models.CharField(help_text='An SPDX identifier, such as CC-BY-4.0, GPL-3.0-only, or LicenseRef-DocILE for a license of your own.', max_length=80, validators=[docvqa_site.licenses.validate_license]),
        ),
    ]
