import django.utils.timezone
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    dependencies = [
    ]

    operations = [
        migrations.CreateModel(
            name='OutgoingMail',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('subject', models.TextField()),
                ('body', models.TextField()),
                ('html', models.TextField(blank=True)),
                ('sender', models.CharField(max_length=320)),
                ('recipients', models.JSONField()),
                ('reply_to', models.JSONField(default=list)),
                ('headers', models.JSONField(default=dict)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('due_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('attempts', models.PositiveSmallIntegerField(default=0)),
                ('failed_at', models.DateTimeField(blank=True, null=True)),
                ('error', models.TextField(blank=True)),
            ],
            options={
                'ordering': ['due_at', 'pk'],
                'indexes': [models.Index(condition=models.Q(('failed_at__isnull', True)), fields=['due_at'], name='mails_to_send')],
            },
        ),
    ]
