import django.db.models.deletion
import django.utils.timezone
import uuid
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    replaces = [('evaluation', '0001_initial'), ('evaluation', '0002_examinations_by_request'), ('evaluation', '0003_results_that_decide_ranks'), ('evaluation', '0004_inventories'), ('evaluation', '0005_inventory_leakage_sets')]

    initial = True

    dependencies = [
        ('submissions', '0001_squashed_0012'),
        ('teams', '0001_squashed_0003'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='Inventory',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('worker', models.CharField(max_length=200, unique=True)),
                ('references', models.JSONField(default=dict)),
                ('test_sets', models.JSONField(default=dict)),
                ('leakage_sets', models.JSONField(default=dict)),
                ('seen_at', models.DateTimeField()),
            ],
            options={
                'verbose_name_plural': 'inventories',
                'ordering': ['worker'],
            },
        ),
        migrations.CreateModel(
            name='StepQueue',
            fields=[
                ('name', models.CharField(max_length=40, primary_key=True, serialize=False)),
                ('turn', models.PositiveIntegerField(default=1, help_text='The turn of the last step sent.')),
                ('ticket', models.PositiveBigIntegerField(default=0, help_text='The last ticket given out.')),
                ('paused_at', models.DateTimeField(blank=True, null=True)),
                ('probe_at', models.DateTimeField(blank=True, null=True)),
                ('reason', models.TextField(blank=True, help_text='Why the queue is paused.')),
                ('unattended_at', models.DateTimeField(blank=True, help_text='When the organizers were notified that no worker takes its steps.', null=True)),
            ],
            options={
                'ordering': ['name'],
            },
        ),
        migrations.CreateModel(
            name='StoredSample',
            fields=[
                ('run', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='weight_sample', serialize=False, to='submissions.run')),
                ('key_id', models.CharField(max_length=16)),
                ('per_tensor', models.PositiveSmallIntegerField()),
                ('changes', models.BinaryField()),
            ],
        ),
        migrations.CreateModel(
            name='Watch',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('watched_at', models.DateTimeField()),
                ('since', models.DateTimeField()),
            ],
            options={
                'verbose_name_plural': 'watch',
            },
        ),
        migrations.CreateModel(
            name='Evaluation',
            fields=[
                ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('attempt', models.PositiveSmallIntegerField()),
                ('retry', models.PositiveSmallIntegerField(default=0)),
                ('faults', models.PositiveSmallIntegerField(default=0)),
                ('losses', models.PositiveSmallIntegerField(default=0)),
                ('state', models.CharField(choices=[('queued', 'queued'), ('running', 'running'), ('passed', 'passed'), ('rejected', 'rejected'), ('failed', 'failed'), ('lost', 'lost'), ('canceled', 'canceled')], default='queued', max_length=10)),
                ('step', models.CharField(choices=[('validate', 'validate'), ('communication', 'communication'), ('accounting', 'accounting'), ('scoring', 'scoring'), ('leakage', 'leakage')], max_length=20)),
                ('done', models.PositiveIntegerField(default=0)),
                ('total', models.PositiveIntegerField(default=0)),
                ('remaining_s', models.FloatField(blank=True, null=True)),
                ('worker', models.CharField(blank=True, max_length=200)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('step_queued_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('not_before', models.DateTimeField(blank=True, help_text='When the attempt may begin, after a platform fault.', null=True)),
                ('turn', models.PositiveIntegerField(blank=True, null=True)),
                ('ticket', models.PositiveBigIntegerField(blank=True, null=True)),
                ('sent_at', models.DateTimeField(blank=True, help_text='When the step was sent to the broker; empty while it waits in the queue.', null=True)),
                ('renewals', models.PositiveSmallIntegerField(default=0, help_text="How often the step was sent again because its files' addresses had expired.")),
                ('heartbeat_at', models.DateTimeField(blank=True, null=True)),
                ('finished_at', models.DateTimeField(blank=True, null=True)),
                ('run', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='evaluations', to='submissions.run')),
            ],
            options={
                'ordering': ['-created_at'],
            },
        ),
        migrations.CreateModel(
            name='Examination',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('level', models.PositiveSmallIntegerField(choices=[(1, 'L1 conforming'), (2, 'L2 replayed'), (3, 'L3 rerun')], help_text='The level that the run gets if it passes.')),
                ('state', models.CharField(choices=[('queued', 'queued'), ('running', 'running'), ('passed', 'passed'), ('failed', 'not passed'), ('broken', 'broken'), ('canceled', 'canceled')], default='queued', max_length=10)),
                ('requested_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('machine', models.CharField(blank=True, help_text='The machine that runs the examination.', max_length=200)),
                ('heartbeat_at', models.DateTimeField(blank=True, help_text="The machine's last heartbeat.", null=True)),
                ('progress', models.CharField(blank=True, max_length=200)),
                ('finished_at', models.DateTimeField(blank=True, null=True)),
                ('report', models.JSONField(blank=True, null=True)),
                ('reason', models.TextField(blank=True, help_text='Why the examination is broken.')),
                ('by', models.ForeignKey(blank=True, help_text='The organizer; empty if nobody was named.', null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('run', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='examinations', to='submissions.run')),
            ],
            options={
                'ordering': ['-requested_at', '-id'],
            },
        ),
        migrations.CreateModel(
            name='NearCopy',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('agreement', models.FloatField(help_text='The share of sampled changes on which the two runs agree.')),
                ('cosine', models.FloatField(help_text='Of the sampled changes.')),
                ('found_at', models.DateTimeField(db_index=True, default=django.utils.timezone.now)),
                ('other', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='submissions.run')),
                ('run', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='near_copies', to='submissions.run')),
            ],
            options={
                'verbose_name_plural': 'near copies',
                'ordering': ['-found_at', '-pk'],
            },
        ),
        migrations.CreateModel(
            name='StepReport',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('step', models.CharField(choices=[('validate', 'validate'), ('communication', 'communication'), ('accounting', 'accounting'), ('scoring', 'scoring'), ('leakage', 'leakage')], max_length=20)),
                ('outcome', models.CharField(choices=[('passed', 'passed'), ('rejected', 'rejected'), ('failed', 'failed')], max_length=10)),
                ('problems', models.JSONField(default=list)),
                ('result', models.JSONField(blank=True, null=True)),
                ('detail', models.JSONField(blank=True, null=True)),
                ('provenance', models.JSONField(default=dict)),
                ('operator_trace', models.TextField(blank=True)),
                ('received_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('evaluation', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='reports', to='evaluation.evaluation')),
            ],
            options={
                'ordering': ['received_at'],
            },
        ),
        migrations.CreateModel(
            name='TeamTurn',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('turn', models.PositiveIntegerField()),
                ('submission', models.UUIDField()),
                ('queue', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='team_turns', to='evaluation.stepqueue')),
                ('team', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='teams.team')),
            ],
        ),
        migrations.CreateModel(
            name='TestSet',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=64, unique=True)),
                ('sha256', models.CharField(max_length=64, verbose_name='SHA-256')),
                ('split_sha256', models.CharField(blank=True, help_text="Empty if the test set isn't split.", max_length=64, verbose_name='SHA-256 of its split')),
                ('private_fraction', models.FloatField(blank=True, help_text='The approximate share of private questions.', null=True)),
                ('first_scored_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('revealed_at', models.DateTimeField(blank=True, help_text='When the private part was revealed; since then, results are based on it.', null=True)),
            ],
            options={
                'constraints': [models.CheckConstraint(condition=models.Q(('revealed_at__isnull', True), models.Q(('split_sha256', ''), _negated=True), _connector='OR'), name='only_a_split_test_set_is_revealed')],
            },
        ),
        migrations.CreateModel(
            name='Worker',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=200)),
                ('seen_at', models.DateTimeField()),
                ('sick_at', models.DateTimeField(blank=True, null=True)),
                ('reason', models.TextField(blank=True)),
                ('queue', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='workers', to='evaluation.stepqueue')),
            ],
            options={
                'ordering': ['-seen_at'],
            },
        ),
        migrations.AddIndex(
            model_name='evaluation',
            index=models.Index(fields=['state', 'step_queued_at'], name='evaluation__state_0ce0bb_idx'),
        ),
        migrations.AddIndex(
            model_name='evaluation',
            index=models.Index(condition=models.Q(('state', 'queued')), fields=['step', 'turn', 'ticket'], name='waiting_steps_in_order'),
        ),
        migrations.AddConstraint(
            model_name='evaluation',
            constraint=models.UniqueConstraint(fields=('run', 'attempt'), name='attempts_are_numbered'),
        ),
        migrations.AddConstraint(
            model_name='evaluation',
            constraint=models.UniqueConstraint(condition=models.Q(('state__in', ['queued', 'running'])), fields=('run',), name='one_active_evaluation_per_run'),
        ),
        migrations.AddConstraint(
            model_name='examination',
            constraint=models.CheckConstraint(condition=models.Q(('level__in', [1, 2, 3])), name='examinations_are_of_known_levels'),
        ),
        migrations.AddConstraint(
            model_name='examination',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('finished_at__isnull', False), ('report__isnull', False), ('state__in', ['passed', 'failed'])), models.Q(models.Q(('state__in', ['passed', 'failed']), _negated=True), ('report__isnull', True)), _connector='OR'), name='examinations_that_ended_with_a_verdict_have_a_report'),
        ),
        migrations.AddConstraint(
            model_name='examination',
            constraint=models.UniqueConstraint(condition=models.Q(('state__in', ['queued', 'running'])), fields=('run',), name='one_active_examination_per_run'),
        ),
        migrations.AddConstraint(
            model_name='nearcopy',
            constraint=models.UniqueConstraint(fields=('run', 'other'), name='one_row_for_two_runs'),
        ),
        migrations.AddIndex(
            model_name='stepreport',
            index=models.Index(fields=['received_at'], name='evaluation__receive_bc99c9_idx'),
        ),
        migrations.AddConstraint(
            model_name='stepreport',
            constraint=models.UniqueConstraint(fields=('evaluation', 'step'), name='one_report_per_step'),
        ),
        migrations.AddConstraint(
            model_name='teamturn',
            constraint=models.UniqueConstraint(fields=('queue', 'team'), name='one_last_turn_of_a_team'),
        ),
        migrations.AddConstraint(
            model_name='worker',
            constraint=models.UniqueConstraint(fields=('queue', 'name'), name='one_row_for_a_worker'),
        ),
    ]
