from django.db import migrations, models
import django.db.models.deletion
import django.utils.timezone


class Migration(migrations.Migration):

    dependencies = [
        ('challenge', '0017_staff_of_all_tracks'),
        ('submissions', '0018_practice_has_no_token'),
        ('teams', '0001_squashed_0003'),
    ]

    operations = [
        migrations.CreateModel(
            name='ExtraSubmissions',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('count', models.PositiveSmallIntegerField()),
                ('reason', models.CharField(max_length=300)),
                ('granted_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('team', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='extra_submissions', to='teams.team')),
                ('track', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='extra_submissions', to='challenge.track')),
            ],
            options={
                'verbose_name_plural': 'extra submissions',
                'ordering': ['-granted_at', '-pk'],
            },
        ),
    ]
