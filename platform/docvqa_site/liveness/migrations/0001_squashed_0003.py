import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    replaces = [('liveness', '0001_initial'), ('liveness', '0002_outages_and_notices'), ('liveness', '0003_outage_waited')]

    initial = True

    dependencies = [
    ]

    operations = [
        migrations.CreateModel(
            name='SignOfLife',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('process', models.CharField(max_length=20, unique=True)),
                ('at', models.DateTimeField()),
            ],
            options={
                'verbose_name_plural': 'signs of life',
            },
        ),
        migrations.CreateModel(
            name='Outage',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('cause', models.CharField(choices=[('stopped', 'the site was stopped'), ('unattended', 'no worker took steps'), ('paused', 'a queue was paused, because steps failed'), ('reported', 'reported by the organizers'), ('maintenance', 'planned maintenance')], max_length=12)),
                ('queue', models.CharField(blank=True, help_text="The workers' queue; empty if the whole site was down.", max_length=40)),
                ('track', models.CharField(blank=True, help_text='The affected track; empty if all tracks were affected.', max_length=50)),
                ('starts_at', models.DateTimeField(verbose_name='starts')),
                ('ends_at', models.DateTimeField(blank=True, help_text='Empty while it is going on.', null=True, verbose_name='ends')),
                ('text', models.CharField(blank=True, max_length=300)),
                ('waited', models.JSONField(blank=True, editable=False, null=True)),
            ],
            options={
                'ordering': ['-starts_at', '-pk'],
                'constraints': [models.UniqueConstraint(condition=models.Q(('ends_at__isnull', True)), fields=('cause', 'queue'), name='one_outage_of_a_cause_goes_on'), models.CheckConstraint(condition=models.Q(('ends_at__isnull', True), ('ends_at__gte', models.F('starts_at')), _connector='OR'), name='outages_end_after_they_start')],
            },
        ),
        migrations.CreateModel(
            name='Notice',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('text', models.CharField(max_length=500)),
                ('page', models.CharField(blank=True, help_text='A path of this site.', max_length=200)),
                ('shown_from', models.DateTimeField()),
                ('shown_until', models.DateTimeField(db_index=True)),
                ('outage', models.OneToOneField(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='notice', to='liveness.outage')),
            ],
            options={
                'ordering': ['shown_from', 'pk'],
            },
        ),
    ]
