import django.db.models.deletion
import django.utils.timezone
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('uploads', '0001_squashed_0002'),
    ]

    operations = [
        migrations.CreateModel(
            name='Drawing',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('state', models.CharField(choices=[('waiting', 'waiting'), ('ready', 'ready'), ('failed', 'failed')], default='waiting', max_length=10)),
                ('problem', models.JSONField(blank=True, default=dict)),
                ('tries', models.PositiveSmallIntegerField(default=0)),
                ('claimed_until', models.DateTimeField(default=django.utils.timezone.now)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('upload', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='drawing', to='uploads.upload')),
            ],
            options={
                'ordering': ['created_at'],
            },
        ),
        migrations.CreateModel(
            name='Page',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('number', models.PositiveSmallIntegerField()),
                ('width', models.PositiveIntegerField()),
                ('height', models.PositiveIntegerField()),
                ('size_bytes', models.PositiveIntegerField(help_text='Of its image.')),
                ('text', models.TextField(blank=True)),
                ('drawing', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='pages', to='proofs.drawing')),
            ],
            options={
                'ordering': ['number'],
            },
        ),
        migrations.AddIndex(
            model_name='drawing',
            index=models.Index(condition=models.Q(('state', 'waiting')), fields=['created_at'], name='drawings_that_wait'),
        ),
        migrations.AddConstraint(
            model_name='page',
            constraint=models.UniqueConstraint(fields=('drawing', 'number'), name='pages_of_a_drawing_are_numbered'),
        ),
    ]
