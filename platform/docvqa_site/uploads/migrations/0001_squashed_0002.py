import django.db.models.deletion
import django.utils.timezone
import uuid
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    replaces = [('uploads', '0001_initial'), ('uploads', '0002_uploads_of_organizers')]

    initial = True

    dependencies = [
        ('teams', '0001_squashed_0003'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='Upload',
            fields=[
                ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('filename', models.CharField(max_length=200)),
                ('size_bytes', models.PositiveBigIntegerField()),
                ('sha256', models.CharField(max_length=64)),
                ('part_size_bytes', models.PositiveBigIntegerField()),
                ('state', models.CharField(choices=[('open', 'open'), ('completed', 'completed'), ('aborted', 'aborted'), ('expired', 'expired')], default='open', max_length=10)),
                ('store_key', models.CharField(max_length=300, unique=True)),
                ('store_upload', models.CharField(blank=True, max_length=1000)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('finished_at', models.DateTimeField(blank=True, null=True)),
                ('removed_at', models.DateTimeField(blank=True, help_text='When the store confirmed that nothing is left of the upload.', null=True)),
                ('created_by', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('team', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='uploads', to='teams.team')),
            ],
            options={
                'ordering': ['-created_at'],
            },
        ),
        migrations.CreateModel(
            name='SignedPart',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('number', models.PositiveIntegerField()),
                ('sha256', models.CharField(max_length=64)),
                ('upload', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='signed_parts', to='uploads.upload')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('upload', 'number'), name='one_hash_for_a_part')],
            },
        ),
    ]
