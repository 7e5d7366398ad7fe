"""The site as a WSGI application, for gunicorn."""

import os

from django.conf import settings
from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "docvqa_site.settings")
# It sets up Django, which the module below needs.
_site = get_wsgi_application()

from docvqa_site.in_flight import LimitedPerNetwork  # noqa: E402

application = LimitedPerNetwork(_site, most=max(1, settings.WEB_THREADS * 7 // 8))
