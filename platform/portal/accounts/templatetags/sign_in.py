from django import template

from portal.accounts.models import User
from portal.accounts.sign_in import NAMES, linked_accounts, offered_providers

register = template.Library()


@register.simple_tag
def sign_in_providers() -> dict[str, str]:
    """Return the names of the providers that the site offers to sign in with, by their ids."""
    return offered_providers()


@register.simple_tag
def accounts_linked_to(user: User) -> list[dict[str, object]]:
    """Return the accounts at providers that open the user's account."""
    return [{"account": account, "name": name} for account, name in linked_accounts(user)]


@register.filter
def provider_name(provider: str) -> str:
    """Return the name of the provider with this id."""
    return NAMES.get(provider, provider)
