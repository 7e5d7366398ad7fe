"""Which kinds of notification come by mail: what people choose on their page, or by the link in a mail."""

from collections.abc import Collection

from django.core.signing import BadSignature, Signer
from django.db import transaction

from docvqa_site.accounts.models import User
from docvqa_site.audit.models import record
from docvqa_site.notifications.kinds import ALWAYS_MAILED, Kind, kinds_for
from docvqa_site.notifications.models import MailTurnedOff


def mailed_kinds(user: User) -> list[Kind]:
    off = set(MailTurnedOff.objects.filter(user=user).values_list("kind", flat=True))
    return [kind for kind in kinds_for(user) if kind not in off]


@transaction.atomic
def choose_mails(user: User, wanted: Collection[str]) -> None:
    """Let `user` get mails of the `wanted` kinds, and of those that nobody can turn off, alone."""
    for kind in kinds_for(user):
        if kind not in wanted:
            turn_off(user, kind, by="page")
        elif MailTurnedOff.objects.filter(user=user, kind=kind).delete()[0]:
            record(user, "mail.turned_on", user, kind=kind)


@transaction.atomic
def turn_off(user: User, kind: Kind, *, by: str) -> None:
    """End mails of this kind; may be repeated. `by` says in the audit record whether the page or a link was used."""
    if kind in ALWAYS_MAILED:
        return
    _, is_new = MailTurnedOff.objects.get_or_create(user=user, kind=kind)
    if is_new:
        record(user, "mail.turned_off", user, kind=kind, by=by)


def _signer() -> Signer:
    return Signer(sep=".", salt="docvqa_site.notifications.unsubscribe")


def link_token(user: User, kind: Kind) -> str:
    """Return what a link carries that ends mails of this kind to `user`, and can do nothing else; it never expires."""
    return _signer().sign(f"{user.pk}.{kind}")


def read_link_token(token: str) -> tuple[User, Kind] | None:
    """Return whom and what a link's token is for; None if the site didn't sign it."""
    try:
        number, _, kind = _signer().unsign(token).partition(".")
    except BadSignature:
        return None
    user = User.objects.filter(pk=number).first()
    return (user, Kind(kind)) if user and kind in Kind.values else None
