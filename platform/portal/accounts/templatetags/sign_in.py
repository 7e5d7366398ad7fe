from django import template

from portal.accounts.sign_in import NAMES, name_there, offered_providers

register = template.Library()
register.simple_tag(offered_providers, name="sign_in_providers")
register.filter(name_there)


@register.filter
def provider_name(provider: str) -> str:
    return NAMES.get(provider, provider)
