"""The site as an ASGI application, for uvicorn."""

import os

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "docvqa_site.settings")

application = get_asgi_application()
