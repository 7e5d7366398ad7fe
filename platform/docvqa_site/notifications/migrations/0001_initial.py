import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='MailTurnedOff',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('kind', models.CharField(choices=[('results', 'Results of your team'), ('proofs', "Reviews of your team's proofs"), ('team', "Your team's members and keys"), ('deadlines', 'Deadlines'), ('announcements', 'Announcements'), ('reviewing', 'Proofs to review'), ('operations', 'Faults of the site'), ('security', 'Security of your account')], max_length=15)),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('user', 'kind'), name='mail_is_turned_off_once')],
            },
        ),
        migrations.CreateModel(
            name='Notification',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('kind', models.CharField(choices=[('results', 'Results of your team'), ('proofs', "Reviews of your team's proofs"), ('team', "Your team's members and keys"), ('deadlines', 'Deadlines'), ('announcements', 'Announcements'), ('reviewing', 'Proofs to review'), ('operations', 'Faults of the site'), ('security', 'Security of your account')], max_length=15)),
                ('subject', models.TextField()),
                ('text', models.TextField(blank=True)),
                ('page', models.CharField(blank=True, help_text='The path of the page that the notification is about.', max_length=200)),
                ('key', models.CharField(blank=True, help_text='The key of a one-time event, so nobody is notified of it twice.', max_length=120)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('read_at', models.DateTimeField(blank=True, null=True)),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='notifications', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'ordering': ['-created_at', '-pk'],
                'indexes': [models.Index(fields=['user', '-created_at'], name='notifications_of_a_person'), models.Index(condition=models.Q(('read_at__isnull', True)), fields=['user'], name='unread_notifications')],
                'constraints': [models.UniqueConstraint(condition=models.Q(('key', ''), _negated=True), fields=('user', 'key'), name='notified_once_of_a_key')],
            },
        ),
    ]
