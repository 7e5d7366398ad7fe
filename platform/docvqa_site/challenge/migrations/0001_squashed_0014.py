import django.core.validators
import django.db.models.deletion
import django.utils.timezone
import docvqa_site.challenge.models
import docvqa_site.challenge.rankings
import docvqa_site.ui.names
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    replaces = [('challenge', '0001_initial'), ('challenge', '0002_kinds_of_tracks'), ('challenge', '0003_say_unpublished'), ('challenge', '0004_plain_help_texts'), ('challenge', '0005_challenges_per_day'), ('challenge', '0006_drawn_rounds'), ('challenge', '0007_ranks_that_need_an_examination'), ('challenge', '0008_longer_names_of_kinds'), ('challenge', '0009_description_and_code'), ('challenge', '0010_differences_and_extensions'), ('challenge', '0011_data_hash_for_participants'), ('challenge', '0012_drafts_people_and_registration'), ('challenge', '0013_counted_bytes'), ('challenge', '0014_draws_for_messages')]

    initial = True

    dependencies = [
        ('teams', '0001_squashed_0003'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='Track',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('slug', models.SlugField(unique=True)),
                ('name', models.CharField(max_length=120)),
                ('summary', models.CharField(max_length=300)),
                ('description', models.TextField(help_text="Markdown, shown on the track's page.")),
                ('ranking', models.CharField(choices=docvqa_site.challenge.rankings.choices, max_length=40)),
                ('position', models.PositiveSmallIntegerField(default=0)),
                ('is_draft', models.BooleanField(default=False, help_text='Only organizers see it.', verbose_name='draft')),
                ('registration', models.CharField(choices=[('none', 'teams submit without registering'), ('questions', 'teams register, and are admitted at once'), ('approval', 'teams register, and an organizer admits them')], default='none', max_length=10)),
                ('registration_questions', models.TextField(blank=True, default='', help_text='Questions that a team answers when it registers, one per line.', verbose_name='questions')),
                ('paused', models.BooleanField(default=False, help_text='While this is checked, the track accepts no submissions.')),
                ('reference', models.CharField(help_text='Base weights: a folder under references/ on the workers.', max_length=64, validators=[django.core.validators.RegexValidator('^[a-z0-9][a-z0-9._-]{0,63}$', 'Lower-case letters, digits, dots and dashes.')])),
                ('trainable', models.TextField(blank=True, default='', help_text='Tensors that may differ from the base weights: name patterns, one per line, such as language_backbone.* or *.layer_norm.weight. Blank: all.', validators=[docvqa_site.challenge.models.validate_patterns])),
                ('test_set', models.CharField(help_text='Secret test set: a folder under test_sets/ on the workers.', max_length=64, validators=[django.core.validators.RegexValidator('^[a-z0-9][a-z0-9._-]{0,63}$', 'Lower-case letters, digits, dots and dashes.')])),
                ('leakage_set', models.CharField(blank=True, default='', help_text='Data with members and nonmembers of the training set, used to measure leakage: a folder under test_sets/ on the workers. Blank: leakage is not measured.', max_length=64, validators=[django.core.validators.RegexValidator('^[a-z0-9][a-z0-9._-]{0,63}$', 'Lower-case letters, digits, dots and dashes.')])),
                ('leakage_split', models.CharField(default='red', help_text='The split of this data to use.', max_length=64, validators=[django.core.validators.RegexValidator('^[a-z0-9][a-z0-9._-]{0,63}$', 'Lower-case letters, digits, dots and dashes.')])),
                ('clients', models.PositiveSmallIntegerField(default=10, validators=[django.core.validators.MinValueValidator(1)])),
                ('max_rounds', models.PositiveIntegerField(default=10000, validators=[django.core.validators.MinValueValidator(1)])),
                ('max_checkpoint_bytes', models.PositiveBigIntegerField(default=2147483648, validators=[django.core.validators.MinValueValidator(1)])),
                ('first_download', models.CharField(choices=[('free', 'free, as in the published competition'), ('counted', 'counted, even if the log leaves it out')], default='free', help_text='Whether the bytes of a run include what its clients download in the first round.', max_length=10)),
                ('anls_threshold', models.FloatField(default=0.8242, help_text='Only for tracks ranked by bytes: runs below this score are listed without a rank.', validators=[docvqa_site.challenge.models.validate_finite, django.core.validators.MinValueValidator(0), django.core.validators.MaxValueValidator(1), docvqa_site.challenge.models.validate_four_decimals])),
                ('delta', models.FloatField(default=1e-05, help_text='Only for tracks ranked by ANLS: the δ at which ε is computed.', validators=[docvqa_site.challenge.models.validate_finite, django.core.validators.MinValueValidator(1e-12), django.core.validators.MaxValueValidator(0.001)])),
                ('budgets', models.JSONField(default=docvqa_site.challenge.models.default_budgets, help_text='Only for tracks ranked by ANLS: the ε of each board.', validators=[docvqa_site.challenge.models.validate_budgets])),
                ('sampling_rule', models.CharField(choices=[('two_stage', 'two-stage: from the perspective of someone who knows which clients take part'), ('product', 'product: client rate times provider rate, as in the published competition')], default='two_stage', help_text='Only for tracks ranked by ANLS: the rule used for ranking. ε under the other rule is shown for comparison.', max_length=10)),
                ('accountant', models.CharField(choices=[('pld', 'PLD: privacy loss distributions'), ('rdp', 'RDP: Rényi differential privacy')], default='pld', help_text='Only for tracks ranked by ANLS: the accountant used for ranking. ε from the other accountant is shown for comparison.', max_length=3)),
                ('adjacency', models.CharField(choices=[('add_remove', 'add or remove one provider'), ('replace', 'replace one provider')], default='add_remove', help_text='Only for tracks ranked by ANLS: the adjacency that training records must declare.', max_length=10)),
                ('providers_per_client', models.JSONField(blank=True, default=list, help_text='Only for tracks ranked by ANLS: the number of training providers per client, in the order of the client ids. Training records with more providers are rejected. Empty: not checked.', validators=[docvqa_site.challenge.models.validate_providers])),
                ('data_sha256', models.CharField(blank=True, help_text='Only for tracks ranked by ANLS: the output of `pfl data manifest FOLDER` for the training data. Runs whose annex states a different hash are rejected. Only participants can see the hash, through the API, so `pfl` can compare their data before training. Empty: not checked.', max_length=64, validators=[django.core.validators.RegexValidator('^[0-9a-f]{64}$', '64 hexadecimal digits in lower case.')], verbose_name='data manifest')),
                ('unbound_level', models.PositiveSmallIntegerField(choices=[(0, 'ranked like any other run'), (2, 'not ranked until a replay (L2) or rerun (L3) confirms them'), (3, 'not ranked until a rerun (L3) confirms them')], default=2, help_text='Only for tracks ranked by ANLS: how to rank a run if no check ties its recorded sums to its checkpoint.', verbose_name='unbound runs')),
                ('drawn_rounds', models.PositiveSmallIntegerField(default=3, help_text="How many rounds are drawn, in addition to the last one: of a replayable run for a replay, and of a run whose messages are too large to be attached as a whole (more if they fit into 12 GB). If a draft's rounds were opened before this number changes, a replayable run must be trained again, and messages must be opened again.", validators=[django.core.validators.MaxValueValidator(60)])),
                ('challenges_per_day', models.PositiveSmallIntegerField(default=15, help_text='How many challenges the site draws for a team in any 24 hours: one for each new training record, and one for each new index of messages that are too large to be attached as a whole.', validators=[django.core.validators.MinValueValidator(1)])),
                ('required_reviews', models.PositiveSmallIntegerField(default=2, help_text='Only for tracks ranked by ANLS: number of accepting reviewers required for a verified result.')),
                ('requires_code', models.BooleanField(default=False, help_text='Submissions must describe their method, and either link to a commit of the code or attach the settings or method file to each run. Everyone can see the description and the link; reviewers can also see the files.', verbose_name='description and code required')),
                ('organizers', models.ManyToManyField(blank=True, help_text='Track organizers who organize this track. All other organizers organize every track.', related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'ordering': ['position', 'slug'],
                'permissions': [('organize', "Can use the organizers' desk")],
            },
        ),
        migrations.CreateModel(
            name='StaffInvitation',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('email', models.EmailField(max_length=254)),
                ('role', models.CharField(choices=[('reviewer', 'reviewer of privacy proofs, in every track'), ('organizer', 'organizer of this track alone')], max_length=10)),
                ('digest', models.CharField(help_text='SHA-256 of the secret in the link.', max_length=64, unique=True)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('accepted_at', models.DateTimeField(blank=True, null=True)),
                ('invited_by', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('track', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='staff_invitations', to='challenge.track')),
            ],
            options={
                'ordering': ['-created_at'],
            },
        ),
        migrations.CreateModel(
            name='RuleChange',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('at', models.DateTimeField(default=django.utils.timezone.now)),
                ('text', models.TextField(help_text='The change, with the old and the new value.')),
                ('difference', models.TextField(blank=True, help_text='For texts, the lines that were added and removed.')),
                ('reason', models.CharField(blank=True, max_length=300)),
                ('track', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='rule_changes', to='challenge.track')),
            ],
            options={
                'ordering': ['-at', '-pk'],
            },
        ),
        migrations.CreateModel(
            name='TeamRegistration',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('answers', models.JSONField(blank=True, default=list)),
                ('state', models.CharField(choices=[('waiting', 'waiting for the organizers'), ('admitted', 'admitted'), ('declined', 'declined')], default='waiting', max_length=10)),
                ('reason', models.CharField(blank=True, help_text='Why the team was declined (visible to the team).', max_length=300)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('created_by', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('team', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='registrations', to='teams.team')),
                ('track', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='registrations', to='challenge.track')),
            ],
            options={
                'ordering': ['created_at', 'pk'],
                'constraints': [models.UniqueConstraint(fields=('team', 'track'), name='a_team_registers_once_for_a_track')],
            },
        ),
        migrations.CreateModel(
            name='Phase',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', docvqa_site.ui.names.NameField(default='Submissions', max_length=60)),
                ('starts_at', models.DateTimeField(blank=True, help_text='In UTC, such as 2026-11-22 14:00. Empty: always open before the end.', null=True, verbose_name='starts')),
                ('ends_at', models.DateTimeField(blank=True, help_text='In UTC. If empty, there is no deadline.', null=True, verbose_name='ends')),
                ('submissions_per_day', models.PositiveSmallIntegerField(default=5, help_text='Per team, in any 24 hours.', validators=[django.core.validators.MinValueValidator(1)])),
                ('results', models.CharField(choices=[('at_once', 'public as soon as a run is scored'), ('after_end', 'visible only to the team until the phase ends')], default='at_once', max_length=10)),
                ('allows_private', models.BooleanField(default=False, help_text='Teams choose when their submissions are published.', verbose_name='unpublished submissions')),
                ('anonymity', models.CharField(choices=[('none', 'teams are named'), ('until_named', 'teams may stay anonymous until they reveal their name'), ('until_end', 'teams may stay anonymous until the phase ends')], default='none', max_length=12, verbose_name='names')),
                ('examined_ranks', models.PositiveSmallIntegerField(default=0, help_text='How many of the top ranks on each board become final only after an examination. The site requests these examinations automatically. 0: none.', verbose_name='ranks to examine')),
                ('examined_level', models.PositiveSmallIntegerField(choices=[(2, 'a replay (L2) or a rerun (L3)'), (3, 'a rerun (L3)')], default=3, help_text='The examination that these ranks need.', verbose_name='examination')),
                ('requires_counted', models.BooleanField(default=True, help_text='Bytes ranking: runs whose bytes are declared are listed without a rank.', verbose_name='counted bytes only')),
                ('extended_minutes', models.PositiveIntegerField(default=0, editable=False, help_text="How much the phase's end was moved to make up for outages.")),
                ('track', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='phases', to='challenge.track')),
            ],
            options={
                'ordering': [models.OrderBy(models.F('starts_at'), nulls_first=True)],
                'constraints': [models.UniqueConstraint(fields=('track', 'name'), name='phases_of_a_track_have_different_names'), models.CheckConstraint(condition=models.Q(('starts_at__isnull', True), ('ends_at__isnull', True), ('ends_at__gt', models.F('starts_at')), _connector='OR'), name='phases_end_after_they_start')],
            },
        ),
    ]
