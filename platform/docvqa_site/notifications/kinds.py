"""The kinds of notifications: one list behind preferences, emails and pages."""

from django.db import models

from docvqa_site.accounts.models import User
from docvqa_site.accounts.selectors import is_reviewer


class Kind(models.TextChoices):
    """A kind of notification. People choose for each but `SECURITY` whether it comes by mail as well.

    Of all kinds, official decisions are mailed to everybody whom they are about.
    """

    RESULTS = "results", "Your team's results"
    PROOFS = "proofs", "Reviews of your team's proofs"
    TEAM = "team", "Your team's members and keys"
    DEADLINES = "deadlines", "Deadlines"
    ANNOUNCEMENTS = "announcements", "Announcements"
    REVIEWING = "reviewing", "Proofs to review"
    OPERATIONS = "operations", "Faults of the site"
    SECURITY = "security", "Security of your account"


EXPLANATIONS = {
    Kind.RESULTS: "One of your team's runs has been scored, rejected or disqualified, is being re-evaluated, or "
    "can't be evaluated; another member withdraws a submission; a phase's results become public; the private part of "
    "the test set is revealed; a change of the rules takes a rank.",
    Kind.PROOFS: "A reviewer decides on one of your team's privacy proofs.",
    Kind.TEAM: "Someone joins, leaves or is removed; a signing key is added or revoked; you become the owner.",
    Kind.DEADLINES: "A track that your team has registered for, or has a draft or submission in, closes in a week or "
    "in a day; its phases change; a phase has ended.",
    Kind.ANNOUNCEMENTS: "Messages from the organizers to all participants, to the teams of a track, or to your team; "
    "the rules change of a track that your team has registered for, or has a draft or submission in.",
    Kind.REVIEWING: "New, revised or overdue proofs, those that need another reviewer, and the final verdicts "
    "on proofs that you decided on; at most one reminder a day.",
    Kind.OPERATIONS: "Evaluation steps that no worker is running, examinations that no machine is running, and "
    "failing workers.",
    Kind.SECURITY: "Changes to your password, email address or login methods; new API tokens; the deletion of your "
    "account.",
}
# What organizers are notified of in addition.
OF_ORGANIZERS = {
    Kind.DEADLINES: "For organizers: a phase has ended, and is to be closed.",
    Kind.ANNOUNCEMENTS: "For organizers: someone accepts your invitation to review or organize; a team asks to be "
    "admitted to a track.",
}
# What says who reviews a proof, or what was decided.
ABOUT_REVIEWS = frozenset({Kind.PROOFS, Kind.REVIEWING})
ALWAYS_MAILED = frozenset({Kind.SECURITY})
# The official decisions of the organizers, in the words of pages and mails.
OFFICIAL = "disqualifications and changes of rules and deadlines"


def explanation(kind: Kind, user: User) -> str:
    """Return what `user` gets notifications of this kind about."""
    more = OF_ORGANIZERS.get(kind, "") if user.is_staff else ""
    return f"{EXPLANATIONS[kind]} {more}".strip()


def kinds_for(user: User) -> list[Kind]:
    """Return the kinds that `user` can be notified of."""
    others = {Kind.REVIEWING: is_reviewer(user), Kind.OPERATIONS: user.is_staff}
    return [kind for kind in Kind if others.get(kind, True)]
