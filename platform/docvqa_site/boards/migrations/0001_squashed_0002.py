import django.db.models.deletion
import django.utils.timezone
from django.db import migrations, models


class Migration(migrations.Migration):

    replaces = [('leaderboard', '0001_initial'), ('leaderboard', '0002_final_results')]

    initial = True

    dependencies = [
        ('challenge', '0001_squashed_0014'),
        ('submissions', '0001_squashed_0012'),
    ]

    operations = [
        migrations.CreateModel(
            name='FinalResults',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('slug', models.SlugField(help_text='The last part of the address.', max_length=60, unique=True, verbose_name='name')),
                ('title', models.CharField(max_length=120)),
                ('made_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('standings', models.JSONField(default=list)),
                ('doi', models.CharField(blank=True, help_text='For example, 10.5281/zenodo.1234567, once the files are archived there.', max_length=100, verbose_name='DOI')),
                ('phase', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='final_results', to='challenge.phase')),
            ],
            options={
                'verbose_name_plural': 'final results',
                'ordering': ['-made_at', '-pk'],
            },
        ),
        migrations.CreateModel(
            name='FrozenFile',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=100)),
                ('sha256', models.CharField(max_length=64, verbose_name='SHA-256')),
                ('size_bytes', models.PositiveBigIntegerField()),
                ('compressed', models.BinaryField()),
                ('results', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='files', to='leaderboard.finalresults')),
            ],
            options={
                'ordering': ['name'],
                'constraints': [models.UniqueConstraint(fields=('results', 'name'), name='one_frozen_file_of_a_name')],
            },
        ),
        migrations.CreateModel(
            name='RankRecord',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('day', models.DateField(help_text="In the site's time zone.")),
                ('rank', models.PositiveIntegerField(help_text='Empty once the run no longer had a rank.', null=True)),
                ('run', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='rank_records', to='submissions.run')),
            ],
            options={
                'ordering': ['run', 'day'],
                'constraints': [models.UniqueConstraint(fields=('run', 'day'), name='one_rank_of_a_run_a_day')],
            },
        ),
    ]
