"""The groups that give people their rights. Each `migrate` adds the groups and permissions that are missing."""

from typing import Any

from django.apps import AppConfig
from django.contrib.auth.management import create_permissions
from django.contrib.auth.models import Group, Permission

from docvqa_site.accounts.models import TRACK_ORGANIZERS

REVIEWERS = "Reviewers"
# Those who organize every track.
ORGANIZERS = "Organizers"
# What organizers of single tracks may do at the desk; the administration is closed to them.
_OF_TRACKS: dict[str, tuple[str, ...]] = {
    "challenge": ("organize", "change_track"),
    "submissions": ("view_submission", "change_submission"),
    "evaluation": ("change_evaluation", "add_examination"),
}
# The permissions of each group, by the app whose they are. Accounts, their rights and groups are left to superusers.
GROUPS: dict[str, dict[str, tuple[str, ...]]] = {
    REVIEWERS: {"reviews": ("review_proofs",)},
    TRACK_ORGANIZERS: _OF_TRACKS,
    ORGANIZERS: {
        "accounts": ("view_user",),
        "audit": ("view_auditentry",),
        "leaderboard": ("view_finalresults",),
        "challenge": (*_OF_TRACKS["challenge"], "add_track", "view_track"),
        "downloads": ("change_download", "add_terms", "view_terms", "view_acceptance"),
        "evaluation": (
            *_OF_TRACKS["evaluation"],
            "view_evaluation",
            "view_examination",
            "view_testset",
            "change_stepqueue",
        ),
        "mail": ("view_outgoingmail",),
        "news": ("add_newsitem", "change_newsitem", "delete_newsitem"),
        "reviews": ("view_proofreview",),
        "submissions": (*_OF_TRACKS["submissions"], "view_runtoken"),
        "teams": ("change_team", "change_membership", "view_invitation", "view_teamkey"),
    },
}


def fill_groups(app_config: AppConfig, using: str = "default", **options: Any) -> None:
    """Give the groups their permissions of an app that was migrated; the first of them creates the group."""
    # Django's own receiver of this signal may come later.
    create_permissions(app_config, using=using, **options)
    for name, permissions in GROUPS.items():
        if names := permissions.get(app_config.label):
            group, _ = Group.objects.using(using).get_or_create(name=name)
            of_app = Permission.objects.using(using).filter(content_type__app_label=app_config.label)
            group.permissions.add(*of_app.filter(codename__in=names))
