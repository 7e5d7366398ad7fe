"""What speaks against a person's judging submissions: one definition for a single submission and for a query."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from uuid import UUID

from django.db.models import QuerySet, Value

from docvqa_site.accounts.models import User
from docvqa_site.challenge.selectors import others_tracks
from docvqa_site.reviews.models import Recusal
from docvqa_site.submissions.models import RunToken, Submission
from docvqa_site.submissions.selectors import tracks_competed_in
from docvqa_site.teams.selectors import teams_ever_of


@dataclass(frozen=True)
class Conflicts:
    """What speaks against a person's judging submissions, by what they ever were, whatever permissions they have.

    Each part is looked up when it is first needed, and once. So make one for each request and for each decision: it
    doesn't notice what changes later.
    """

    person: User

    def about(self, submission: Submission) -> str:
        """Return why the person may not judge the submission; empty if nothing speaks against it."""
        if submission.team_id in self._teams:
            return "You are or were a member of the submitting team."
        if submission.created_by_id == self.person.pk or submission.team_id in self._issued:
            return "You took part in this submission."
        if submission.track_id in self.competed:
            return "Your team competes in this track."
        if submission.track_id in self._of_others:
            return "You don't organize this track."
        if submission.pk in self._declared:
            return "You have declared a conflict of interest."
        return ""

    def exclude_from(self, submissions: QuerySet[Submission]) -> QuerySet[Submission]:
        """Return those of the submissions that nothing speaks against; see `about`."""
        # Keys and no queries: they are few, and PostgreSQL can't estimate how much a query excludes by another one.
        return (
            submissions.exclude(team__in=self._teams | self._issued)
            .exclude(created_by=self.person)
            .exclude(track__in=self.competed | self._of_others)
            .exclude(pk__in=self._declared)
        )

    def recusal(self, submission: Submission) -> Recusal | None:
        """Return why the person stepped aside from the review of the proof; None if they didn't."""
        return self.recusals.get(submission.pk)

    def recused_from(self, why: Recusal.Why) -> set[UUID]:
        """Return the submissions that the person doesn't review for this reason."""
        return {key for key, one in self.recusals.items() if one.why == why}

    @cached_property
    def recusals(self) -> Mapping[UUID, Recusal]:
        """What the person doesn't review, by the submission."""
        return {one.submission_id: one for one in Recusal.objects.filter(person=self.person)}

    @cached_property
    def competed(self) -> frozenset[int]:
        """The tracks in which a team of theirs competes, or did."""
        return frozenset(tracks_competed_in(self._teams).values_list("pk", flat=True))

    @property
    def _declared(self) -> set[UUID]:
        return self.recused_from(Recusal.Why.CONFLICT)

    @property
    def _teams(self) -> frozenset[int]:
        return self._teams_and_issued[0]

    @property
    def _issued(self) -> frozenset[int]:
        """The teams for which they issued run tokens."""
        return self._teams_and_issued[1]

    @cached_property
    def _teams_and_issued(self) -> tuple[frozenset[int], frozenset[int]]:
        teams = teams_ever_of(self.person).order_by().values_list("pk", Value(1))
        tokens = RunToken.objects.filter(issued_to=self.person).order_by().values_list("team", Value(0))
        found = list(teams.union(tokens))
        return (
            frozenset(team for team, is_theirs in found if is_theirs),
            frozenset(team for team, is_theirs in found if not is_theirs),
        )

    @cached_property
    def _of_others(self) -> frozenset[int]:
        """The tracks that only others organize; none for whoever isn't an organizer of single tracks."""
        return frozenset(others_tracks(self.person).values_list("pk", flat=True))
