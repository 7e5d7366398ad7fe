from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from typing_extensions import override

from docvqa_site.accounts.models import User
from docvqa_site.submissions.models import Submission, SubmissionState
from docvqa_site.submissions.services import mark_baseline


class Command(BaseCommand):
    help = (
        "Mark a team's submissions as the organizers' baselines; leaderboards label them and can hide them."
    )

    @override
    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("team", help="the team's name")
        parser.add_argument("--by", required=True, metavar="EMAIL", help="the organizer, for the audit log")

    @override
    def handle(self, *args: Any, team: str, by: str, **options: Any) -> None:
        organizer = User.objects.filter(email=by, is_staff=True).first()
        if organizer is None:
            raise CommandError(f"No organizer has the address {by}.")
        submissions = Submission.objects.filter(
            team__name=team, state=SubmissionState.SUBMITTED, is_baseline=False
        )
        for submission in submissions:
            mark_baseline(submission, True, organizer)
            self.stdout.write(f"{submission.track}: {submission} is a baseline.")
