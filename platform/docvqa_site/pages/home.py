"""The home page and the list of the leaderboards. What they show of the boards is rendered once for each version."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.conf import settings
from django.contrib.auth.models import AnonymousUser
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.template.loader import render_to_string
from django.utils import timezone
from django.utils.safestring import SafeString, mark_safe
from django.views.decorators.http import require_safe

from docvqa_site.about.citations import COMPETITION_PAPER, DATA_PAPER, bibtex
from docvqa_site.accounts.models import User
from docvqa_site.audit.versions import boards_versions
from docvqa_site.boards.boards import Leaders, leaders_of, stored_boards
from docvqa_site.boards.caching import cached, page_unless_unchanged
from docvqa_site.boards.cells import standing
from docvqa_site.boards.ranking import Entry
from docvqa_site.challenge.models import Track
from docvqa_site.challenge.rankings import Ranking
from docvqa_site.downloads.commands import drafts_of, missing_files, track_commands, trial_commands
from docvqa_site.downloads.kit import find_wheel, install_command
from docvqa_site.downloads.models import Download, DownloadKind
from docvqa_site.news.models import NewsItem, published
from docvqa_site.pages.member import MemberHome, home_of
from docvqa_site.pages.participation import counted
from docvqa_site.submissions.quota import PRACTICE_SLOTS
from docvqa_site.teams.selectors import team_of
from docvqa_site.ui.budgets import at_budget

NEWS = 3


@dataclass(frozen=True)
class TrackCard:
    """A track with what its leaders have reached."""

    track: Track
    leaders: SafeString


@dataclass(frozen=True)
class Leader:
    """A run that leads a board, with the ranks that the intervals of scores allow, if there is more than one."""

    entry: Entry
    kind: Ranking
    possible_ranks: str = ""

    @property
    def figure(self) -> str:
        results = self.entry.results
        return self.kind.figure(getattr(results, self.kind.first), results.anls, results.decimals)

    @property
    def standing(self) -> SafeString:
        return standing(self.entry)


@dataclass(frozen=True)
class BoardLeaders:
    """Who leads one board.

    Attributes:
        name: The board's budget, or what comes first on it.
        best: The first run; where reviewers decide, the first verified one. None while there is none.
        under_review: The first run, where it is not verified yet but would be by the reviewers' decision.
    """

    name: str
    best: Leader | None
    under_review: Leader | None

    @classmethod
    def of(cls, found: Leaders) -> "BoardLeaders":
        track = found.board.track
        name = at_budget(found.board.budget, "{}") or track.kind.best
        row = found.first
        first = Leader(row.entry, track.kind, row.possible_ranks) if row else None
        if not track.kind.is_reviewed:
            return cls(name, first, None)
        if row and row.entry == found.verified:
            return cls(name, first, None)
        verified = Leader(found.verified, track.kind) if found.verified else None
        return cls(name, verified, first)


@require_safe
def home(request: HttpRequest) -> HttpResponse:
    """Show what the benchmark is, who leads, and how to take part."""
    tracks = list(Track.objects.prefetch_related("phases"))
    versions = boards_versions([track.pk for track in tracks])
    news = list(published()[:NEWS])

    def respond() -> HttpResponse:
        open_tracks = [track for track in tracks if not track.closed_because()]
        take_part = next((track for track in open_tracks if not missing_files(track)), None)
        kit = list(Download.objects.offered().filter(kind=DownloadKind.KIT))
        install = install_command(kit)
        first, *rest = track_commands(take_part) if take_part else [trial_commands()]
        context = {
            "cards": _cards(tracks, versions),
            "shows_epsilon": any(track.budgets for track in tracks),
            "organizers": settings.ORGANIZERS,
            "open_tracks": open_tracks,
            "participation": counted(tracks, versions),
            "take_part": take_part,
            "blocks": [[install, *first], *rest],
            "drafts": drafts_of(take_part) if take_part else [],
            "news": news,
            "practice_slots": PRACTICE_SLOTS,
            "wheel": find_wheel(kit),
            "data_set": DATA_PAPER,
            "competition": COMPETITION_PAPER,
            "bibtex": bibtex(settings.SITE_URL, timezone.now().year),
            "member": _member(request.user),
        }
        return render(request, "pages/home.html", context)

    return page_unless_unchanged(request, _version(versions, news), respond)


def _member(user: User | AnonymousUser) -> MemberHome | None:
    """Return the part of the page that is the user's own. Staff without a team need not form one."""
    if not isinstance(user, User) or (user.is_staff and team_of(user) is None):
        return None
    return home_of(user)


@require_safe
def index(request: HttpRequest) -> HttpResponse:
    tracks = list(Track.objects.prefetch_related("phases"))
    versions = boards_versions([track.pk for track in tracks])

    def respond() -> HttpResponse:
        context = {"cards": _cards(tracks, versions), "participation": counted(tracks, versions)}
        return render(request, "pages/index.html", context)

    return page_unless_unchanged(request, _version(versions, []), respond)


def _cards(tracks: Sequence[Track], versions: dict[int, str]) -> list[TrackCard]:
    return [TrackCard(track, _leaders(track, versions[track.pk])) for track in tracks]


def _leaders(track: Track, version: str) -> SafeString:
    """Return who leads the track's boards; nothing in it changes with time alone, since it is cached."""

    def draw() -> str:
        leaders = [BoardLeaders.of(found) for found in leaders_of(stored_boards(track))]
        has_best = any(one.best for one in leaders)
        context = {
            "track": track,
            "leaders": leaders,
            "heading": track.kind.best_heading(has_best=has_best),
            "has_best": has_best,
            "is_known": any(one.best or one.under_review for one in leaders),
        }
        return render_to_string("pages/leaders.html", context)

    return mark_safe(cached(version, f"leaders {track.pk}", draw))  # noqa: S308  (a template made it)


def _version(versions: dict[int, str], news: Sequence[NewsItem]) -> str:
    """Return what the page depends on: boards, news, and the hour, since it says how long tracks are open."""
    hour = timezone.now().strftime("%Y-%m-%d %H")
    return f"{versions} {[(item.pk, item.title) for item in news]} {hour}"
