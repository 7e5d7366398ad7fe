import django.db.models.deletion
import django.db.models.fields.json
import django.db.models.functions.comparison
import django.db.models.functions.text
import django.utils.timezone
import evaluator.messages.results
import evaluator.messages.states
import docvqa_site.submissions.results_field
import docvqa_site.ui.names
import uuid
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    replaces = [('submissions', '0001_initial'), ('submissions', '0002_pending_artifacts'), ('submissions', '0003_say_unpublished'), ('submissions', '0004_plain_help_texts'), ('submissions', '0005_tries'), ('submissions', '0006_unbound_runs'), ('submissions', '0007_staged_proofs_and_proposals'), ('submissions', '0008_practice_submissions'), ('submissions', '0009_counted_bytes_files'), ('submissions', '0010_counted_bytes'), ('submissions', '0011_runs_keep_their_rule'), ('submissions', '0012_index_challenges')]

    initial = True

    dependencies = [
        ('challenge', '0001_squashed_0014'),
        ('teams', '0001_squashed_0003'),
        ('uploads', '0001_squashed_0002'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='Submission',
            fields=[
                ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('title', docvqa_site.ui.names.NameField(help_text="The method's name, as it appears on the leaderboard.", max_length=120)),
                ('description', models.TextField(blank=True, help_text='Markdown.', max_length=10000)),
                ('code_url', models.URLField(blank=True, verbose_name='link to the code')),
                ('paper_url', models.URLField(blank=True, verbose_name='link to a paper')),
                ('is_baseline', models.BooleanField(default=False, help_text="Marked as the organizers' baseline.")),
                ('state', models.CharField(choices=[('draft', 'draft'), ('submitted', 'submitted'), ('withdrawn', 'withdrawn')], default=evaluator.messages.states.SubmissionState['DRAFT'], max_length=10)),
                ('created_at', models.DateTimeField(db_index=True, default=django.utils.timezone.now)),
                ('submitted_at', models.DateTimeField(blank=True, db_index=True, null=True)),
                ('keep_private', models.BooleanField(default=False, help_text='Only your team and the organizers can see it until you publish it. Reviews start after publication.', verbose_name='keep it unpublished')),
                ('published_at', models.DateTimeField(blank=True, help_text="Empty while it isn't public.", null=True)),
                ('practice', models.BooleanField(default=False, help_text="Practice submissions are evaluated like any other, but are never public, reviewed or ranked. They need no proof, may repeat a checkpoint, have scores with two decimals, and don't count against the quota.", verbose_name='submit for practice')),
                ('anonymous', models.BooleanField(default=False, help_text='Listed by title under a random name, without its team, description and links. Organizers and reviewers can see your team so that they can spot conflicts of interest.', verbose_name='stay anonymous')),
                ('alias', models.CharField(blank=True, help_text='The name shown while the submission is anonymous.', max_length=40)),
                ('refunded_at', models.DateTimeField(blank=True, help_text='When the quota slot was returned.', null=True)),
                ('refunded_for', models.CharField(blank=True, choices=[('platform', 'the platform failed'), ('rejected', 'the files were rejected before scoring')], max_length=10)),
                ('publishes_proof', models.BooleanField(default=False, help_text='The team agrees to make the proof and the checklist public while the result is verified.', verbose_name='publish the privacy proof')),
                ('edited_at', models.DateTimeField(blank=True, help_text='When its description or links were last changed after submission.', null=True)),
                ('acceptances', models.PositiveSmallIntegerField(default=0, editable=False)),
                ('rejections', models.PositiveSmallIntegerField(default=0, editable=False)),
                ('change_requests', models.PositiveSmallIntegerField(default=0, editable=False)),
                ('rejection_stands', models.BooleanField(default=False, editable=False)),
                ('proof_rejected', models.GeneratedField(db_persist=True, expression=models.ExpressionWrapper(models.Q(models.Q(('acceptances', 0), ('change_requests', 0), ('rejection_stands', True), ('rejections', 1)), models.Q(('rejections__gte', 2), ('rejections__gte', models.F('acceptances'))), _connector='OR'), models.BooleanField()), output_field=models.BooleanField())),
                ('lower_title', models.GeneratedField(db_persist=True, expression=django.db.models.functions.text.Lower('title'), output_field=models.TextField())),
                ('created_by', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('phase', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='submissions', to='challenge.phase')),
                ('team', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='submissions', to='teams.team')),
                ('track', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='submissions', to='challenge.track')),
            ],
            options={
                'ordering': ['-created_at'],
            },
        ),
        migrations.CreateModel(
            name='Run',
            fields=[
                ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('budget', models.FloatField(blank=True, help_text='ε of the board; empty in tracks without privacy budgets.', null=True)),
                ('state', models.CharField(choices=[('draft', 'draft'), ('queued', 'queued'), ('running', 'running'), ('scored', 'scored'), ('rejected', 'rejected'), ('failed', 'failed')], default=evaluator.messages.states.RunState['DRAFT'], max_length=10)),
                ('challenge', models.CharField(blank=True, editable=False, max_length=64)),
                ('rules', models.JSONField(default=dict, editable=False)),
                ('results', docvqa_site.submissions.results_field.ResultsField(default=evaluator.messages.results.RunResults, editable=False)),
                ('pending', docvqa_site.submissions.results_field.ResultsField(default=evaluator.messages.results.RunResults, editable=False)),
                ('scored_at', models.DateTimeField(blank=True, editable=False, null=True)),
                ('disqualified_because', models.CharField(blank=True, help_text="The organizers' public reason; empty unless they disqualified the run.", max_length=300)),
                ('log_accepted_at', models.DateTimeField(blank=True, editable=False, help_text='When an organizer accepted the declared communication log in spite of a flagged check.', null=True)),
                ('anls', models.GeneratedField(db_persist=True, expression=django.db.models.functions.comparison.Cast(django.db.models.fields.json.KeyTextTransform('anls', 'results'), models.FloatField()), output_field=models.FloatField())),
                ('anls_low', models.GeneratedField(db_persist=True, expression=django.db.models.functions.comparison.Cast(django.db.models.fields.json.KeyTextTransform('anls_low', 'results'), models.FloatField()), output_field=models.FloatField())),
                ('anls_high', models.GeneratedField(db_persist=True, expression=django.db.models.functions.comparison.Cast(django.db.models.fields.json.KeyTextTransform('anls_high', 'results'), models.FloatField()), output_field=models.FloatField())),
                ('bytes_total', models.GeneratedField(db_persist=True, expression=django.db.models.functions.comparison.Cast(django.db.models.fields.json.KeyTextTransform('bytes_total', 'results'), models.BigIntegerField()), output_field=models.BigIntegerField())),
                ('epsilon', models.GeneratedField(db_persist=True, expression=django.db.models.functions.comparison.Cast(django.db.models.fields.json.KeyTextTransform('epsilon', 'results'), models.FloatField()), output_field=models.FloatField())),
                ('flagged_checks', models.GeneratedField(db_persist=True, expression=django.db.models.functions.comparison.Cast(django.db.models.fields.json.KeyTextTransform('flagged_checks', 'results'), models.IntegerField()), output_field=models.IntegerField())),
                ('trust_level', models.GeneratedField(db_persist=True, expression=django.db.models.functions.comparison.Cast(django.db.models.fields.json.KeyTextTransform('trust_level', 'results'), models.IntegerField()), output_field=models.IntegerField())),
                ('unbound', models.GeneratedField(db_persist=True, expression=django.db.models.functions.comparison.Cast(django.db.models.fields.json.KeyTextTransform('unbound', 'results'), models.TextField()), output_field=models.TextField())),
                ('failed_level', models.GeneratedField(db_persist=True, expression=django.db.models.functions.comparison.Cast(django.db.models.fields.json.KeyTextTransform('failed_level', 'results'), models.IntegerField()), output_field=models.IntegerField())),
                ('counting', models.GeneratedField(db_persist=True, expression=django.db.models.functions.comparison.Cast(django.db.models.fields.json.KeyTextTransform('counting', 'results'), models.TextField()), output_field=models.TextField())),
                ('log_flag', models.GeneratedField(db_persist=True, expression=django.db.models.functions.comparison.Cast(django.db.models.fields.json.KeyTextTransform('log_flag', 'results'), models.TextField()), output_field=models.TextField())),
                ('submission', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='runs', to='submissions.submission')),
            ],
            options={
                'ordering': ['budget'],
            },
        ),
        migrations.CreateModel(
            name='Artifact',
            fields=[
                ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('kind', models.CharField(choices=[('checkpoint', 'checkpoint'), ('communication_log', 'communication log'), ('training_record', 'training record'), ('training_annex', 'training annex'), ('settings', 'settings'), ('method_file', 'method file'), ('round_opening', 'round opening'), ('privacy_proof', 'privacy proof'), ('transcript', 'transcript'), ('messages', 'messages'), ('codec_file', 'codec file')], max_length=20)),
                ('state', models.CharField(choices=[('pending', 'pending'), ('staged', 'staged'), ('attached', 'attached'), ('superseded', 'superseded')], default='pending', max_length=10)),
                ('version', models.PositiveSmallIntegerField(default=1)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now, help_text='When the file was attached or, while it is pending, when its upload began.')),
                ('superseded_at', models.DateTimeField(blank=True, null=True)),
                ('note', models.TextField(blank=True, help_text='What changed in a revised proof.', max_length=2000)),
                ('upload', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='artifacts', to='uploads.upload')),
                ('run', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='artifacts', to='submissions.run')),
                ('submission', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='artifacts', to='submissions.submission')),
            ],
            options={
                'ordering': ['kind', 'version'],
            },
        ),
        migrations.CreateModel(
            name='IndexChallenge',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('index_sha256', models.CharField(max_length=64, unique=True)),
                ('challenge', models.CharField(max_length=64)),
                ('challenged_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('team', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='index_challenges', to='teams.team')),
                ('track', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='index_challenges', to='challenge.track')),
            ],
            options={
                'ordering': ['-challenged_at', '-pk'],
                'indexes': [models.Index(fields=['team', 'track'], name='submissions_team_id_d484c8_idx')],
            },
        ),
        migrations.CreateModel(
            name='RunToken',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('token', models.CharField(max_length=64, unique=True)),
                ('issued_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('training', models.CharField(blank=True, max_length=32)),
                ('record_sha256', models.CharField(blank=True, max_length=64)),
                ('challenge', models.CharField(blank=True, max_length=64)),
                ('challenged_at', models.DateTimeField(blank=True, help_text='When its challenge was drawn.', null=True)),
                ('explanation', models.TextField(blank=True, help_text='Why there is no run whose ε was recomputed. Visible to the organizers and the reviewers of later runs.', max_length=1000)),
                ('events', models.JSONField(default=list)),
                ('issued_to', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('run', models.OneToOneField(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='token', to='submissions.run')),
                ('team', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='run_tokens', to='teams.team')),
                ('track', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='run_tokens', to='challenge.track')),
            ],
            options={
                'ordering': ['-issued_at', '-pk'],
                'indexes': [models.Index(fields=['team', 'track'], name='submissions_team_id_131ac0_idx')],
                'constraints': [models.CheckConstraint(condition=models.Q(models.Q(('challenge', ''), ('challenged_at__isnull', True), ('record_sha256', ''), ('run__isnull', True)), models.Q(('record_sha256', ''), ('challenge', ''), ('challenged_at__isnull', True), _connector='OR', _negated=True), _connector='OR'), name='a_record_has_a_challenge')],
            },
        ),
        migrations.AddIndex(
            model_name='submission',
            index=models.Index(condition=models.Q(('published_at__isnull', False), ('state', 'submitted')), fields=['track'], include=('id', 'team', 'submitted_at', 'anonymous', 'created_by', 'published_at', 'acceptances', 'rejections', 'change_requests', 'rejection_stands', 'proof_rejected'), name='submissions_on_boards'),
        ),
        migrations.AddConstraint(
            model_name='submission',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('state', 'submitted'), _negated=True), ('submitted_at__isnull', False), _connector='OR'), name='submitted_submissions_have_a_time'),
        ),
        migrations.AddConstraint(
            model_name='submission',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('state', 'submitted'), _negated=True), ('phase__isnull', False), _connector='OR'), name='submitted_submissions_have_a_phase'),
        ),
        migrations.AddConstraint(
            model_name='submission',
            constraint=models.CheckConstraint(condition=models.Q(('published_at__isnull', True), ('submitted_at__isnull', False), _connector='OR'), name='only_what_was_submitted_is_published'),
        ),
        migrations.AddConstraint(
            model_name='submission',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('anonymous', True), ('state', 'submitted'), _negated=True), models.Q(('alias', ''), _negated=True), _connector='OR'), name='anonymous_submissions_have_an_alias'),
        ),
        migrations.AddConstraint(
            model_name='submission',
            constraint=models.CheckConstraint(condition=models.Q(('practice', False), ('published_at__isnull', True), _connector='OR'), name='practice_is_never_published'),
        ),
        migrations.AddConstraint(
            model_name='submission',
            constraint=models.UniqueConstraint(condition=models.Q(('alias', ''), _negated=True), fields=('alias',), name='every_alias_is_of_one_submission'),
        ),
        migrations.AddIndex(
            model_name='run',
            index=models.Index(condition=models.Q(('budget__isnull', True), ('scored_at__isnull', False)), fields=['bytes_total'], include=('id', 'submission', 'anls', 'disqualified_because', 'failed_level', 'counting', 'log_flag', 'log_accepted_at'), name='scored_runs_by_bytes'),
        ),
        migrations.AddIndex(
            model_name='run',
            index=models.Index(condition=models.Q(('scored_at__isnull', False)), fields=['budget', '-anls'], include=('id', 'submission', 'anls_low', 'anls_high', 'bytes_total', 'epsilon', 'disqualified_because', 'trust_level', 'unbound', 'failed_level'), name='scored_runs_by_anls'),
        ),
        migrations.AddIndex(
            model_name='run',
            index=models.Index(condition=models.Q(('flagged_checks__gt', 0)), fields=['scored_at'], name='runs_with_flagged_checks'),
        ),
        migrations.AddIndex(
            model_name='run',
            index=models.Index(condition=models.Q(('scored_at__isnull', False)), fields=['submission'], name='scored_runs_of_submissions'),
        ),
        migrations.AddIndex(
            model_name='run',
            index=models.Index(condition=models.Q(('state', 'failed')), fields=['submission'], name='failed_runs'),
        ),
        migrations.AddConstraint(
            model_name='run',
            constraint=models.UniqueConstraint(fields=('submission', 'budget'), name='one_run_per_budget'),
        ),
        migrations.AddConstraint(
            model_name='run',
            constraint=models.UniqueConstraint(condition=models.Q(('budget__isnull', True)), fields=('submission',), name='one_run_without_a_budget'),
        ),
        migrations.AddConstraint(
            model_name='run',
            constraint=models.CheckConstraint(condition=models.Q(('scored_at__isnull', True), ('results__has_keys', ['anls', 'bytes_total', 'trust_level']), _connector='OR'), name='scored_runs_have_scores'),
        ),
        migrations.AddConstraint(
            model_name='run',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('state', 'scored'), _negated=True), ('scored_at__isnull', False), _connector='OR'), name='scored_runs_have_a_time'),
        ),
        migrations.AddConstraint(
            model_name='artifact',
            constraint=models.UniqueConstraint(condition=models.Q(('state', 'attached')), fields=('run', 'kind'), name='one_artifact_of_a_kind_for_a_run'),
        ),
        migrations.AddConstraint(
            model_name='artifact',
            constraint=models.UniqueConstraint(condition=models.Q(('run__isnull', True), ('state', 'attached')), fields=('submission', 'kind'), name='one_newest_proof_of_a_submission'),
        ),
        migrations.AddConstraint(
            model_name='artifact',
            constraint=models.UniqueConstraint(condition=models.Q(('state', 'staged')), fields=('submission',), name='one_staged_proof_of_a_submission'),
        ),
        migrations.AddConstraint(
            model_name='artifact',
            constraint=models.UniqueConstraint(condition=models.Q(('run__isnull', True), models.Q(('state', 'pending'), _negated=True)), fields=('submission', 'kind', 'version'), name='versions_of_a_proof_are_numbered'),
        ),
        migrations.AddConstraint(
            model_name='artifact',
            constraint=models.UniqueConstraint(condition=models.Q(('state', 'pending')), fields=('upload',), name='one_pending_artifact_of_an_upload'),
        ),
        migrations.AddConstraint(
            model_name='artifact',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('kind', 'privacy_proof'), ('run__isnull', True)), models.Q(models.Q(('kind', 'privacy_proof'), _negated=True), ('run__isnull', False)), _connector='OR'), name='proofs_belong_to_submissions'),
        ),
        migrations.AddConstraint(
            model_name='artifact',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('state', 'superseded'), ('superseded_at__isnull', False)), models.Q(('state__in', ['pending', 'staged', 'attached']), ('superseded_at__isnull', True)), _connector='OR'), name='superseded_artifacts_have_a_time'),
        ),
    ]
