"""The contents of the cells of boards as HTML.

They are put together here and not by a template: a page has sixty rows with twenty values each, which takes a template
ten times as long, and most of the time of a page that is not cached.
"""

from functools import cache

from django.urls import reverse
from django.utils.safestring import SafeString
from django.utils.timezone import localtime

from docvqa_site.boards.boards import MethodRow
from docvqa_site.boards.leakage_figures import figures_of
from docvqa_site.boards.ranking import Entry, Row
from docvqa_site.evaluation.display.results import leakage_text
from docvqa_site.ui.links import safe_href
from docvqa_site.ui.markup import markup
from docvqa_site.ui.templatetags.bounds import epsilon
from docvqa_site.ui.templatetags.ui import MISSING, bar, bytes_tag, score, score_interval
from evaluator.messages.jobs import Epsilon
from evaluator.messages.leakage import Leakage
from evaluator.messages.rankings import COUNTED
from evaluator.messages.results import RunResults
from evaluator.scoring.metrics import cut

LINK = ' · <a href="{}" rel="nofollow noopener noreferrer">{}<span class="visually-hidden"> {} {}</span></a>'
PROOF = ' · <a href="{}">proof<span class="visually-hidden"> of {}</span></a>'
BASELINE = SafeString(' <span class="badge badge-baseline">baseline</span>')
NO_RANK = SafeString('<span class="muted" aria-label="no rank">–</span>')
NO_RUN = SafeString('<span class="muted" aria-label="no run">–</span>')
AGAIN = SafeString(' <span class="badge badge-running">re-evaluating</span>')
EMPTY = SafeString("")
MOVED = (
    '<div class="small board-{}"><span aria-hidden="true">{} {}</span>'
    '<span class="visually-hidden">{} {} since last week</span></div>'
)
NEW = SafeString(
    '<div class="small board-new">new<span class="visually-hidden"> (not ranked last week)</span></div>'
)
# Beside the leakage of a run whose ε it contradicts.
ABOVE_MAXIMUM = (
    '<div><a class="badge badge-flagged" href="{}#leakage">above maximum'
    '<span class="visually-hidden"> that ε allows</span></a></div>'
)
# The ranks that stand out.
TOP = 3
PICK = (
    ' · <label class="board-pick"><input type="checkbox" form="compare" name="method" value="{}"> compare'
    '<span class="visually-hidden"> {}</span></label>'
)


def standing(entry: Entry) -> SafeString:
    """Return what one must know of a run before believing its rank: its status, and whether it is a baseline."""
    return markup(
        '<span class="badge badge-{}">{}</span>{}{}',
        entry.status,
        entry.status.label,
        BASELINE if entry.is_baseline else EMPTY,
        AGAIN if entry.is_evaluated_again else EMPTY,
    )


def overview_row(found: MethodRow, *, has_privacy: bool = False) -> SafeString:
    """Return a row of the table of all budgets; if it `has_privacy`, with ε, joint ε and leakage below each score."""
    outcome = found.entry.status
    elements = [
        markup('<th scope="row" class="board-method">{}</th>', method(found.entry, has_pick=True)),
        *(
            markup('<td class="num" data-label="{}">{}{}</td>', label, _run(row), _privacy(row, has_privacy))
            for label, row in found.cells
        ),
        markup(
            '<td class="board-status" data-label="Status"><span class="badge badge-{}">{}</span></td>',
            outcome,
            outcome.label,
        ),
    ]
    return SafeString(f"<tr>{''.join(elements)}</tr>\n")


def method(entry: Entry, *, has_pick: bool = False) -> SafeString:
    """Return the method with its team, date and links; a comment says where a team finds its own mark."""
    return markup(
        '<a href="{}">{}</a>{}<!--team {}--><div class="muted small">{} · {}{}{}{}{}</div>',
        entry.url,
        entry.method,
        BASELINE if entry.is_baseline else EMPTY,
        entry.team_slug,
        _team(entry),
        _day(entry),
        markup(LINK, safe_href(entry.code_url), "code", "of", entry.method) if entry.code_url else EMPTY,
        markup(LINK, safe_href(entry.paper_url), "paper", "on", entry.method) if entry.paper_url else EMPTY,
        markup(PROOF, entry.proof_url, entry.method) if entry.proof_url else EMPTY,
        markup(PICK, entry.submission, entry.method) if has_pick else EMPTY,
    )


def _team(entry: Entry) -> SafeString | str:
    """Return the team's name with its page; one that is anonymous has none."""
    if not entry.team_slug:
        return entry.team
    return markup('<a href="{}">{}</a>', team_address(entry.team_slug), entry.team)


@cache
def team_address(slug: str) -> str:
    return reverse("teams:detail", args=[slug])


def _run(row: Row | None) -> SafeString:
    """Return a method's run on one board: its score with the rank, or why it has none."""
    if row is None:
        return NO_RUN
    return scored(row.entry, row.rank_words if row.rank else row.short_reason)


def _privacy(row: Row | None, is_shown: bool) -> SafeString:
    """Return ε of a run, its joint ε where that is larger, and its leakage where it was measured."""
    if row is None or not is_shown:
        return EMPTY
    results = row.entry.results
    joint = EMPTY
    if _has_larger_joint(results):
        joint = markup(", joint {}", epsilon(results.joint_epsilon))
    leaked = EMPTY
    if results.leakage is not None:
        leaked = markup(
            ' <div class="muted small nowrap">leakage {}</div>{}',
            leakage_text(results.leakage),
            _contradiction(row.entry),
        )
    of_run = markup("ε {}{}", epsilon(results.epsilon), joint)
    return markup(' <div class="muted small nowrap">{}</div>{}', of_run, leaked)


def _has_larger_joint(results: RunResults) -> bool:
    return results.joint_epsilon is not None and results.joint_epsilon > (results.epsilon or 0)


def rank(row: Row) -> SafeString:
    """Return a rank with the ranks that the row could have, and how it has moved."""
    if row.rank is None:
        return NO_RANK
    ranks = EMPTY
    if row.possible_ranks:
        could_be = ' <div class="muted small">could be <span class="nowrap">{}</span></div>'
        ranks = markup(could_be, row.ranks)
    top = SafeString(' class="board-top"') if row.rank <= TOP else EMPTY
    return markup("<strong{}>{}</strong>{}{}", top, row.rank, ranks, _move(row.rank, row.was))


def _move(rank: int, was: int | None) -> SafeString:
    """Return how a rank differs from that of a week before."""
    if was is None or was == rank:
        return EMPTY
    if was == 0:
        return NEW
    direction, sign = ("up", "▲") if rank < was else ("down", "▼")
    places = abs(was - rank)
    return markup(MOVED, direction, sign, places, direction, places)


def scored(entry: Entry, rank: str = "") -> SafeString:
    """Return a score with a bar, and below it its rank, where it is given, and its interval."""
    anls, decimals = entry.results.anls, entry.results.decimals
    below = " · ".join(filter(None, [rank, _interval(entry)]))
    return markup(
        "{}{}{}",
        EMPTY if anls is None else bar(float(cut(anls, decimals))),
        score(anls, decimals),
        # With a space, as these are in one line on a phone, and in what a screen reader calls the row.
        markup(' <div class="muted small">{}</div>', below) if below else EMPTY,
    )


def _interval(entry: Entry) -> str:
    """Return the interval of a score, and the score on the public part once another one ranks."""
    results = entry.results
    public = "" if results.public_anls is None else f"public {score(results.public_anls, results.decimals)}"
    interval = score_interval(results.anls_low, results.anls_high, results.decimals)
    return " · ".join(filter(None, [interval, public]))


def _day(entry: Entry) -> SafeString:
    local = localtime(entry.submitted_at)
    return markup(
        '<time datetime="{}">{}</time>',
        local.isoformat(timespec="seconds"),
        f"{local:%b} {local.day}, {local:%Y}",
    )


def recomputed(found: Epsilon | None) -> SafeString:
    """Return ε by one accountant and rule, marked where it is the one that ranks."""
    if found is None:
        return SafeString(MISSING)
    return deciding_epsilon(found.epsilon) if found.decides else markup("{}", epsilon(found.epsilon))


def deciding_epsilon(value: float | None) -> SafeString:
    """Return the ε that ranks, marked among others."""
    return markup('<strong>{}<span class="visually-hidden"> used for ranking</span></strong>', epsilon(value))


def joint_epsilon(results: RunResults) -> SafeString:
    """Return the joint ε with the place of the run among the team's training runs."""
    below = EMPTY
    if results.joint_runs:
        below = markup(' <div class="muted small">training run {}</div>', results.joint_runs)
    return markup("{}{}", epsilon(results.joint_epsilon), below)


def epsilon_with_joint(results: RunResults) -> SafeString:
    """Return ε, and below it the joint ε where that is larger."""
    below = EMPTY
    if _has_larger_joint(results):
        below = markup(' <div class="muted small nowrap">joint {}</div>', epsilon(results.joint_epsilon))
    return markup("{}{}", epsilon(results.epsilon), below)


def bytes_total(results: RunResults) -> SafeString:
    """Return the bytes of a run, marked where they are the team's word."""
    is_declared = results.bytes_total is not None and results.counting != COUNTED
    below = SafeString(' <div class="muted small">declared</div>') if is_declared else EMPTY
    return markup("{}{}", bytes_tag(results.bytes_total), below)


def counting(results: RunResults) -> SafeString:
    """Return whether the bytes are counted, and how many rounds were recomputed or why none were."""
    below = results.not_counted_because
    if results.counting_label == COUNTED and results.rounds_folded:
        below = f"{results.rounds_folded} round{'' if results.rounds_folded == 1 else 's'} recomputed"
    kind = "verified" if results.counting == COUNTED else "draft"
    return markup(
        '<span class="badge badge-{}">{}</span>{}',
        kind,
        results.counting_label,
        markup('<div class="muted small">{}</div>', below) if below else EMPTY,
    )


def leakage(found: Leakage | None) -> SafeString:
    """Return the AUC of the attack on a run; where it isn't significant, the AUC below which it would not be."""
    text = leakage_text(found)
    if found is None or found.auc is not None or found.least_auc is None:
        return markup("{}", text or MISSING)
    return markup('{} <div class="muted small">AUC&nbsp;below&nbsp;{}</div>', text, f"{found.least_auc:.2f}")


def leakage_of(entry: Entry) -> SafeString:
    """Return the same for a row of a board, and whether what was measured contradicts the run's ε."""
    return markup("{}{}", leakage(entry.results.leakage), _contradiction(entry))


def _contradiction(entry: Entry) -> SafeString:
    """Return that the leakage of a run is above the most that its ε allows, with its whole interval; else nothing."""
    is_above = any(figure.excludes_bound for figure in figures_of(entry.results))
    return markup(ABOVE_MAXIMUM, entry.url) if is_above else EMPTY


def verification(results: RunResults) -> SafeString:
    """Return the level of verification, and who confirmed it when."""
    if results.trust_level is None:
        return SafeString(MISSING)
    by = EMPTY
    if results.trust_level.value and results.trust_at:
        day = f"{results.trust_at:%b} {results.trust_at.day}, {results.trust_at:%Y}"
        by = markup('<div class="muted small">by {}, {}</div>', results.trust_by, day)
    return markup('<span class="badge">{}</span>{}', results.trust_label, by)


def status(row: Row) -> SafeString:
    """Return the status of a row, or in a few signs why it has no rank; what its rank waits for, and flagged checks."""
    entry = row.entry
    unranked = "rejected" if entry.withheld else "unranked"
    kind, label = (unranked, row.short_reason) if row.short_reason else (entry.status, entry.status.label)
    again = AGAIN if entry.is_evaluated_again else EMPTY
    flagged = EMPTY
    if count := entry.flagged_checks:
        words = f"{count} check{'' if count == 1 else 's'} flagged"
        flagged = markup('<div class="small"><a href="{}">{}</a></div>', entry.evidence_url, words)
    pending = EMPTY
    if row.pending:
        words = f"rank {row.rank}, {row.pending_words}"
        pending = markup('<div class="small"><span class="badge badge-provisional">{}</span></div>', words)
    return markup('<span class="badge badge-{}">{}</span>{}{}{}', kind, label, again, pending, flagged)
