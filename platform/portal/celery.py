"""The site's Celery app: it takes the workers' reports and watches over evaluations.

Start it with `celery -A portal.celery worker -Q portal.intake` and, once a site, `celery -A portal.celery beat`.
"""

import os

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")

from django.conf import settings  # noqa: E402

app = Celery("portal")
app.conf.update(settings.CELERY)
app.autodiscover_tasks()
