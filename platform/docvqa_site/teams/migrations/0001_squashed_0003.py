import django.db.models.deletion
import django.utils.timezone
import docvqa_site.teams.countries
import docvqa_site.teams.models
import docvqa_site.ui.names
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    replaces = [('teams', '0001_initial'), ('teams', '0002_alter_team_name_alter_teamkey_name'), ('teams', '0003_country_of_a_team')]

    initial = True

    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='Team',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', docvqa_site.ui.names.NameField(help_text='Shown on the leaderboards.', max_length=80)),
                ('name_skeleton', models.CharField(editable=False, max_length=400, null=True, unique=True)),
                ('slug', models.SlugField(help_text="The team's part of the site's addresses.", max_length=80, unique=True)),
                ('affiliation', docvqa_site.ui.names.NameField(blank=True, help_text='For example, your university or company.', max_length=160)),
                ('website', models.URLField(blank=True)),
                ('country', models.CharField(blank=True, choices=docvqa_site.teams.countries.choices, help_text="Optional. Shown on the team's page, and counted on the participation page.", max_length=2)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('founder', models.ForeignKey(editable=False, help_text='The person who created the team. The number of teams one person can create is limited.', null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'ordering': ['name'],
            },
        ),
        migrations.CreateModel(
            name='PastMembership',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('role', models.CharField(choices=[('owner', 'owner'), ('member', 'member')], max_length=10)),
                ('joined_at', models.DateTimeField()),
                ('left_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='past_memberships', to=settings.AUTH_USER_MODEL)),
                ('team', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='past_memberships', to='teams.team')),
            ],
            options={
                'ordering': ['left_at'],
            },
        ),
        migrations.CreateModel(
            name='Membership',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('role', models.CharField(choices=[('owner', 'owner'), ('member', 'member')], default='member', max_length=10)),
                ('joined_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('user', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='membership', to=settings.AUTH_USER_MODEL)),
                ('team', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='memberships', to='teams.team')),
            ],
            options={
                'ordering': ['joined_at'],
            },
        ),
        migrations.CreateModel(
            name='Invitation',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('email', models.EmailField(max_length=254, verbose_name='email address')),
                ('digest', models.CharField(max_length=64, unique=True)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('expires_at', models.DateTimeField(default=docvqa_site.teams.models._expiry)),
                ('accepted_at', models.DateTimeField(blank=True, null=True)),
                ('revoked_at', models.DateTimeField(blank=True, null=True)),
                ('invited_by', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('team', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='invitations', to='teams.team')),
            ],
            options={
                'constraints': [models.UniqueConstraint(condition=models.Q(('accepted_at__isnull', True), ('revoked_at__isnull', True)), fields=('team', 'email'), name='one_open_invitation_per_address')],
            },
        ),
        migrations.CreateModel(
            name='TeamKey',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('public_key', models.CharField(help_text='64 hexadecimal digits.', max_length=64)),
                ('name', docvqa_site.ui.names.NameField(blank=True, help_text='For example, the machine where the key is stored.', max_length=80)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('revoked_at', models.DateTimeField(blank=True, null=True)),
                ('added_by', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('team', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='keys', to='teams.team')),
            ],
            options={
                'ordering': ['created_at'],
                'constraints': [models.UniqueConstraint(condition=models.Q(('revoked_at__isnull', True)), fields=('public_key',), name='a_current_key_has_one_team')],
            },
        ),
    ]
