from django import template
from django.conf import settings

from docvqa_site.accounts.sign_in import NAMES, name_there, offered_providers

register = template.Library()
register.simple_tag(offered_providers, name="sign_in_providers")
register.filter(name_there)


@register.filter
def provider_name(provider: str) -> str:
    return NAMES.get(provider, provider)


@register.simple_tag
def mail_folder() -> str:
    """Return the folder of the mails of a site that has no mail server; empty where mail is sent."""
    filed = settings.MAIL_DELIVERY_BACKEND == "django.core.mail.backends.filebased.EmailBackend"
    return str(settings.EMAIL_FILE_PATH) if filed else ""
