import django.core.validators
import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    replaces = [('downloads', '0001_initial'), ('downloads', '0002_plain_help_texts'), ('downloads', '0003_count_requests'), ('downloads', '0004_links_and_tracks')]

    initial = True

    dependencies = [
        ('challenge', '0001_squashed_0014'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='Terms',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('title', models.CharField(max_length=120)),
                ('version', models.CharField(help_text='For example, 1 or 2026-11.', max_length=20)),
                ('text', models.TextField(help_text='Markdown.')),
                ('added_at', models.DateTimeField(default=django.utils.timezone.now)),
            ],
            options={
                'verbose_name_plural': 'terms',
                'ordering': ['title', '-added_at'],
                'constraints': [models.UniqueConstraint(fields=('title', 'version'), name='one_text_for_a_version')],
            },
        ),
        migrations.CreateModel(
            name='Download',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('slug', models.SlugField(max_length=80, unique=True)),
                ('kind', models.CharField(choices=[('data', 'Data'), ('weights', 'Base weights'), ('kit', 'Starter kit'), ('notebook', 'Notebooks')], max_length=10)),
                ('title', models.CharField(max_length=120)),
                ('summary', models.CharField(blank=True, max_length=300)),
                ('license', models.CharField(help_text='For example, Apache-2.0 or CC BY 4.0.', max_length=80)),
                ('license_url', models.URLField(blank=True)),
                ('link', models.URLField(blank=True, help_text="Where the file is, if it isn't in this site's store.", max_length=500)),
                ('position', models.PositiveSmallIntegerField(default=0)),
                ('is_offered', models.BooleanField(default=True, help_text='Listed and available for download.')),
                ('filename', models.CharField(max_length=200)),
                ('size_bytes', models.PositiveBigIntegerField(default=0)),
                ('sha256', models.CharField(blank=True, max_length=64, validators=[django.core.validators.RegexValidator('^[0-9a-f]{64}$')])),
                ('store_key', models.CharField(blank=True, max_length=300)),
                ('added_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('times_sent', models.PositiveBigIntegerField(default=0, editable=False, help_text='How often the file was requested; a resumed request counts again.')),
                ('tracks', models.ManyToManyField(blank=True, help_text='The tracks that the download is for. None selected: all tracks.', related_name='downloads', to='challenge.track')),
                ('terms', models.ForeignKey(blank=True, help_text='Required before downloading the file. Blank: no terms.', null=True, on_delete=django.db.models.deletion.PROTECT, related_name='downloads', to='downloads.terms')),
            ],
            options={
                'ordering': ['position', 'slug'],
                'constraints': [models.UniqueConstraint(condition=models.Q(('store_key', ''), _negated=True), fields=('store_key',), name='files_have_different_keys'), models.CheckConstraint(condition=models.Q(('link', ''), ('store_key', ''), _connector='XOR'), name='a_download_is_a_file_or_a_link')],
            },
        ),
        migrations.CreateModel(
            name='Acceptance',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('accepted_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('terms', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='acceptances', to='downloads.terms')),
            ],
            options={
                'ordering': ['-accepted_at'],
                'constraints': [models.UniqueConstraint(fields=('terms', 'user'), name='accepted_once')],
            },
        ),
    ]
