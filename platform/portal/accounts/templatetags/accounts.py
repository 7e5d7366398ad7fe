from django import template
from django.conf import settings

register = template.Library()


@register.simple_tag
def mail_folder() -> str:
    """Return the folder of the mails of a site that has no mail server; empty where mail is sent."""
    filed = settings.MAIL_DELIVERY_BACKEND == "django.core.mail.backends.filebased.EmailBackend"
    return str(settings.EMAIL_FILE_PATH) if filed else ""
