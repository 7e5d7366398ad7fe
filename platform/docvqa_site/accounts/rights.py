"""Who may change whose account: nobody one with more rights than their own. Only superusers change rights."""

from django.contrib.auth.models import Permission
from django.db.models import Q

from docvqa_site.accounts.models import User


def may_change(actor: User, other: User) -> bool:
    """Return whether `other` has no right that `actor` lacks.

    Rights of an inactive account count: it may become active again.
    """
    return actor.is_superuser or (not other.is_superuser and _permissions(other) <= _permissions(actor))


def is_last_superuser(user: User) -> bool:
    """Return whether no other active account is a superuser. In a transaction, it stays true or false."""
    # All are locked, so that two superusers who demote each other wait for each other.
    active = User.objects.select_for_update().filter(is_superuser=True, is_active=True).order_by("pk")
    return {one.pk for one in active} == {user.pk}


def _permissions(user: User) -> set[int]:
    return set(
        Permission.objects.filter(Q(user=user) | Q(group__user=user)).values_list("pk", flat=True).distinct()
    )
