import django.db.models.deletion
import django.utils.timezone
import docvqa_site.accounts.models
import docvqa_site.ui.names
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    replaces = [('accounts', '0001_initial'), ('accounts', '0002_alter_user_name')]

    initial = True

    dependencies = [
        ('auth', '0012_alter_user_first_name_max_length'),
    ]

    operations = [
        migrations.CreateModel(
            name='User',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('password', models.CharField(max_length=128, verbose_name='password')),
                ('last_login', models.DateTimeField(blank=True, null=True, verbose_name='last login')),
                ('is_superuser', models.BooleanField(default=False, help_text='Designates that this user has all permissions without explicitly assigning them.', verbose_name='superuser status')),
                ('is_staff', models.BooleanField(default=False, help_text='Designates whether the user can log into this admin site.', verbose_name='staff status')),
                ('is_active', models.BooleanField(default=True, help_text='Designates whether this user should be treated as active. Unselect this instead of deleting accounts.', verbose_name='active')),
                ('date_joined', models.DateTimeField(default=django.utils.timezone.now, verbose_name='date joined')),
                ('email', models.EmailField(max_length=254, unique=True, verbose_name='email address')),
                ('name', docvqa_site.ui.names.NameField(help_text="Shown with your team's results.", max_length=120)),
                ('orcid', models.CharField(blank=True, help_text='For example, 0000-0002-1825-0097 or its web address.', max_length=19, verbose_name='ORCID iD')),
                ('orcid_verified', models.BooleanField(default=False, editable=False)),
                ('shows_orcid', models.BooleanField(default=False, help_text="Shown on your team's page, on its methods' pages and, once verified, in their citations.", verbose_name='show my ORCID iD')),
                ('session_number', models.PositiveIntegerField(default=0, editable=False, help_text='Every session ends when it changes.')),
                ('groups', models.ManyToManyField(blank=True, help_text='The groups this user belongs to. A user will get all permissions granted to each of their groups.', related_name='user_set', related_query_name='user', to='auth.group', verbose_name='groups')),
                ('user_permissions', models.ManyToManyField(blank=True, help_text='Specific permissions for this user.', related_name='user_set', related_query_name='user', to='auth.permission', verbose_name='user permissions')),
            ],
            options={
                'verbose_name': 'user',
                'verbose_name_plural': 'users',
                'abstract': False,
            },
            managers=[
                ('objects', docvqa_site.accounts.models.UserManager()),
            ],
        ),
        migrations.CreateModel(
            name='ApiToken',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('label', docvqa_site.ui.names.NameField(help_text='Where you use the token, such as “training cluster”.', max_length=80)),
                ('scope', models.CharField(choices=[('read', "read: tracks, your team's submissions and their results"), ('submit', 'submit: everything that pfl does, including reading'), ('manage', 'manage: also your team, its members, invitations and signing keys')], default='submit', max_length=10)),
                ('digest', models.CharField(max_length=64, unique=True)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('expires_at', models.DateTimeField(default=docvqa_site.accounts.models._token_expiry)),
                ('last_used_at', models.DateTimeField(blank=True, null=True)),
                ('revoked_at', models.DateTimeField(blank=True, null=True)),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='api_tokens', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'ordering': ['-created_at'],
            },
        ),
    ]
