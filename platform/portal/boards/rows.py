"""The rows of boards as HTML.

They are put together here and not by a template: a page has sixty of them with twenty values each, which takes a
template ten times as long, and most of the time of a page that is not cached.
"""

from django.utils.safestring import SafeString
from django.utils.timezone import localtime

from evaluator.scoring.metrics import cut
from portal.boards.boards import MethodRow
from portal.boards.columns import Columns
from portal.boards.ranking import Entry, Row
from portal.evaluation.display.results import leakage_text
from portal.ui.markup import markup
from portal.ui.templatetags.bounds import epsilon
from portal.ui.templatetags.ui import MISSING, bar, bytes_tag, score, score_interval

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
    '<div class="small board-new">new<span class="visually-hidden">, without a rank last week</span></div>'
)
# The ranks that stand out.
TOP = 3
PICK = (
    ' · <label class="board-pick"><input type="checkbox" form="compare" name="method" value="{}"> compare'
    '<span class="visually-hidden"> {}</span></label>'
)


def board_row(row: Row, columns: Columns) -> SafeString:
    """Return a row of a board's table."""
    results = row.entry.results
    sent = bytes_tag(results.bytes_total)
    cells = [_rank(row), _method(row.entry, has_pick=columns.picks)]
    if columns.is_private:
        cells += [_score("ANLS", _strong(score(results.anls)), row.entry)]
        cells += [_number("ε", epsilon(results.epsilon)), _number("Communication", sent)]
    else:
        cells += [_number("Communication", _strong(sent))]
        cells += [_score("ANLS", score(results.anls), row.entry)]
    if columns.more:
        cells += _more(row.entry, columns)
    if columns.leakage:
        cells.append(_number("Leakage", leakage_text(results.leakage) or MISSING))
    if columns.trust:
        cells.append(_trust(row.entry))
    cells.append(_status(row))
    return SafeString(f"<tr>{''.join(cells)}</tr>\n")


def overview_row(method: MethodRow) -> SafeString:
    """Return a row of the table of all budgets."""
    status = method.entry.status
    cells = [
        _method(method.entry, has_pick=True),
        *(_run(label, row) for label, row in method.cells),
        markup('<td class="board-status"><span class="badge badge-{}">{}</span></td>', status, status.label),
    ]
    return SafeString(f"<tr>{''.join(cells)}</tr>\n")


def _method(entry: Entry, *, has_pick: bool) -> SafeString:
    """Return the cell with the method, its team, date and links; a comment says where a team finds its own mark."""
    return markup(
        '<th scope="row" class="board-method"><a href="{}">{}</a>{}<!--team {}-->'
        '<div class="muted small">{} · {}{}{}{}{}</div></th>',
        entry.url,
        entry.method,
        BASELINE if entry.is_baseline else EMPTY,
        entry.team_slug,
        entry.team,
        _day(entry),
        markup(LINK, entry.code_url, "code", "of", entry.method) if entry.code_url else EMPTY,
        markup(LINK, entry.paper_url, "paper", "on", entry.method) if entry.paper_url else EMPTY,
        markup(PROOF, entry.proof_url, entry.method) if entry.proof_url else EMPTY,
        markup(PICK, entry.submission, entry.method) if has_pick else EMPTY,
    )


def _run(label: str, row: Row | None) -> SafeString:
    """Return the cell of a method's run on one board: its score with the rank, or why it has none."""
    if row is None:
        return _number(label, NO_RUN)
    rank = f"#{row.rank}" if row.rank else row.short_reason
    return _score(label, _strong(score(row.entry.results.anls)), row.entry, rank)


def _rank(row: Row) -> SafeString:
    if row.rank is None:
        return markup('<td class="num board-rank">{}</td>', NO_RANK)
    ranks = EMPTY
    if row.ranks and row.ranks.best != row.ranks.worst:
        could_be = '<div class="muted small"><span class="visually-hidden">could be </span>{}</div>'
        ranks = markup(could_be, row.ranks)
    top = " board-top" if row.rank <= TOP else ""
    return markup(
        '<td class="num board-rank{}"><strong>{}</strong>{}{}</td>',
        top,
        row.rank,
        ranks,
        _move(row.rank, row.was),
    )


def _move(rank: int, was: int | None) -> SafeString:
    """Return how a rank differs from that of a week before."""
    if was is None or was == rank:
        return EMPTY
    if was == 0:
        return NEW
    direction, sign = ("up", "▲") if rank < was else ("down", "▼")
    places = abs(was - rank)
    return markup(MOVED, direction, sign, places, direction, places)


def _number(label: str, value: str, below: str = "") -> SafeString:
    more = markup('<div class="muted small">{}</div>', below) if below else EMPTY
    return markup('<td class="num" data-label="{}">{}{}</td>', label, value, more)


def _score(label: str, value: str, entry: Entry, rank: str = "") -> SafeString:
    """Return the cell of a score: the score with a bar, and below it its rank, where it is given, and its interval."""
    anls = entry.results.anls
    drawn = markup("{}{}", EMPTY if anls is None else bar(float(cut(anls))), value)
    return _number(label, drawn, " · ".join(filter(None, [rank, _interval(entry)])))


def _interval(entry: Entry) -> str:
    """Return what stands below a score: its interval, and the score on the public part once another one ranks."""
    results = entry.results
    public = "" if results.public_anls is None else f"public {score(results.public_anls)}"
    return " · ".join(filter(None, [score_interval(results.anls_low, results.anls_high), public]))


def _strong(value: str) -> SafeString:
    return markup("<strong>{}</strong>", value)


def _day(entry: Entry) -> SafeString:
    local = localtime(entry.submitted_at)
    return markup(
        '<time datetime="{}">{}</time>', local.isoformat(timespec="seconds"), f"{local.day} {local:%b %Y}"
    )


def _more(entry: Entry, columns: Columns) -> list[SafeString]:
    cells = [_number("Accuracy", score(entry.results.accuracy))]
    for column, found in entry.epsilons:
        value: str = MISSING if found is None else epsilon(found.epsilon)
        if found is not None and found.decides:
            value = markup('<strong>{}<span class="visually-hidden"> used for ranking</span></strong>', value)
        cells.append(_number(column.title, value))
    if columns.is_private:
        accountant = entry.accountant_name or MISSING
        cells.append(markup('<td data-label="Accountant">{}</td>', accountant))
    return cells


def _trust(entry: Entry) -> SafeString:
    results = entry.results
    if results.trust_level is None:
        return markup('<td data-label="Verification">{}</td>', MISSING)
    by = EMPTY
    if results.trust_level.value and results.trust_at:
        day = f"{results.trust_at.day} {results.trust_at:%b %Y}"
        by = markup('<div class="muted small">by {}, {}</div>', results.trust_by, day)
    return markup(
        '<td data-label="Verification"><span class="badge">{}</span>{}</td>', results.trust_level.label, by
    )


def _status(row: Row) -> SafeString:
    entry = row.entry
    kind, label = ("unranked", row.short_reason) if row.short_reason else (entry.status, entry.status.label)
    again = AGAIN if entry.is_evaluated_again else EMPTY
    flagged = EMPTY
    if count := entry.flagged_checks:
        words = f"{count} check{'' if count == 1 else 's'} flagged"
        flagged = markup('<div class="small"><a href="{}#run-{}">{}</a></div>', entry.url, entry.run, words)
    return markup(
        '<td class="board-status"><span class="badge badge-{}">{}</span>{}{}</td>',
        kind,
        label,
        again,
        flagged,
    )
