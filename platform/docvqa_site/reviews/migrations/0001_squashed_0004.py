import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    replaces = [('reviews', '0001_initial'), ('reviews', '0002_alter_proofreview_reason'), ('reviews', '0003_recusals'), ('reviews', '0004_appeals_against_disqualifications')]

    initial = True

    dependencies = [
        ('submissions', '0001_squashed_0012'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='Proof',
            fields=[
            ],
            options={
                'verbose_name': 'privacy proof',
                'proxy': True,
                'indexes': [],
                'constraints': [],
            },
            bases=('submissions.submission',),
        ),
        migrations.CreateModel(
            name='Appeal',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('text', models.TextField()),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('author', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('submission', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='appeal', to='submissions.submission')),
            ],
        ),
        migrations.CreateModel(
            name='ReviewMessage',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('item', models.CharField(blank=True, max_length=40)),
                ('by_team', models.BooleanField()),
                ('text', models.TextField()),
                ('is_mailed', models.BooleanField(default=False)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('author', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('submission', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='review_messages', to='submissions.submission')),
            ],
            options={
                'ordering': ['created_at', 'pk'],
            },
        ),
        migrations.CreateModel(
            name='ProofReview',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('checklist', models.JSONField(blank=True, default=dict)),
                ('notes', models.JSONField(blank=True, default=dict)),
                ('decision', models.CharField(choices=[('pending', 'pending'), ('accepted', 'accepted'), ('changes_requested', 'changes requested'), ('rejected', 'rejected')], default='pending', max_length=20)),
                ('reason', models.TextField(blank=True, help_text='Shown to the team and, if rejected, on the leaderboard.')),
                ('changes_due', models.DateField(blank=True, null=True)),
                ('declares_no_conflict', models.BooleanField(default=False)),
                ('draft', models.JSONField(blank=True, null=True)),
                ('drafted_at', models.DateTimeField(blank=True, null=True)),
                ('assigned_at', models.DateTimeField(blank=True, null=True)),
                ('due', models.DateField(blank=True, null=True)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('decided_at', models.DateTimeField(blank=True, null=True)),
                ('reviewer', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='proof_reviews', to=settings.AUTH_USER_MODEL)),
                ('submission', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='reviews', to='submissions.submission')),
            ],
            options={
                'ordering': ['created_at'],
                'permissions': [('review_proofs', 'Can decide on privacy proofs')],
                'constraints': [models.UniqueConstraint(fields=('submission', 'reviewer'), name='one_review_per_reviewer'), models.CheckConstraint(condition=models.Q(models.Q(('decided_at__isnull', True), ('decision', 'pending')), models.Q(models.Q(('decision', 'pending'), _negated=True), ('decided_at__isnull', False)), _connector='OR'), name='decided_reviews_have_a_time'), models.CheckConstraint(condition=models.Q(models.Q(('decision__in', ['rejected', 'changes_requested']), _negated=True), models.Q(('reason', ''), _negated=True), _connector='OR'), name='objections_have_a_reason')],
            },
        ),
        migrations.CreateModel(
            name='Recusal',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('why', models.CharField(choices=[('conflict', 'I have a conflict of interest'), ('time', "I don't have the time"), ('field', "It isn't my field"), ('coordination', "I coordinate this review and don't decide")], max_length=20)),
                ('text', models.CharField(blank=True, max_length=500)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('person', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='recusals', to=settings.AUTH_USER_MODEL)),
                ('submission', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='recusals', to='submissions.submission')),
            ],
            options={
                'ordering': ['created_at'],
                'constraints': [models.UniqueConstraint(fields=('submission', 'person'), name='one_recusal_per_person')],
            },
        ),
        migrations.CreateModel(
            name='RunAppeal',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('reason', models.CharField(max_length=300)),
                ('text', models.TextField()),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('answer', models.TextField(blank=True)),
                ('answered_at', models.DateTimeField(blank=True, null=True)),
                ('author', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('run', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='appeals', to='submissions.run')),
            ],
            options={
                'ordering': ['created_at'],
                'constraints': [models.UniqueConstraint(fields=('run', 'reason'), name='one_appeal_against_a_disqualification'), models.CheckConstraint(condition=models.Q(models.Q(('answer', ''), ('answered_at__isnull', True)), models.Q(models.Q(('answer', ''), _negated=True), ('answered_at__isnull', False)), _connector='OR'), name='answered_appeals_have_a_time')],
            },
        ),
    ]
