"""What people are notified of: one list, from which preferences, mails and pages follow."""

from django.db import models

from portal.accounts.models import User
from portal.accounts.selectors import is_reviewer


class Kind(models.TextChoices):
    """A kind of notification. People choose for each but `SECURITY` whether it comes by mail as well."""

    RESULTS = "results", "Results of your team"
    PROOFS = "proofs", "Reviews of your team's proofs"
    TEAM = "team", "Your team's members and keys"
    DEADLINES = "deadlines", "Deadlines"
    ANNOUNCEMENTS = "announcements", "Announcements"
    REVIEWING = "reviewing", "Proofs to review"
    OPERATIONS = "operations", "Faults of the site"
    SECURITY = "security", "Security of your account"


EXPLANATIONS = {
    Kind.RESULTS: "A run of your team was scored or rejected, or could not be evaluated; results of a phase became "
    "public, or the private part of the test set was revealed.",
    Kind.PROOFS: "A reviewer decided on a privacy proof of your team.",
    Kind.TEAM: "Somebody joined, left or was removed, a signing key was added or revoked, or you own the team.",
    Kind.DEADLINES: "A track in which your team has a draft or a submission closes in a week, and in a day.",
    Kind.ANNOUNCEMENTS: "The organizers write to participants.",
    Kind.REVIEWING: "Proofs that are new, revised or overdue; at most one reminder a day.",
    Kind.OPERATIONS: "Steps that no worker takes, and workers that fail.",
    Kind.SECURITY: "Your password, your address or the way you log in has changed.",
}
ALWAYS_MAILED = frozenset({Kind.SECURITY})


def kinds_for(user: User) -> list[Kind]:
    """Return the kinds that `user` can be notified of."""
    others = {Kind.REVIEWING: is_reviewer(user), Kind.OPERATIONS: user.is_staff}
    return [kind for kind in Kind if others.get(kind, True)]
