"""What the platform itself knows about a question of the checklist: checks, recorded numbers, run tokens.

It never answers a question. A passed check is limited evidence, which its text on the page names.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from operator import itemgetter

from django.db.models import Count
from pydantic import ValidationError

from docvqa_site.evaluation.display.power import HARDLY_ANY_POWER
from docvqa_site.evaluation.display.results import ShownCheck, shown_checks, tally
from docvqa_site.evaluation.display.status import RunStatus
from docvqa_site.proofs.named_code import NamedCode, file_count, named_code
from docvqa_site.reviews.declared import DECLARED, StatedFact, declared_of
from docvqa_site.submissions.code import code_files
from docvqa_site.submissions.models import Artifact, RunToken, Submission
from docvqa_site.ui.rounding import power_of_ten, rounded_up
from evaluator.mechanisms.events import Event, TwoStage
from evaluator.messages.jobs import AccountingResult, Check, CheckStatus, Step

# Characters of a text in a run's narrow column, and in all columns of the table together.
MOST_IN_COLUMN = 24
MOST_IN_ROW = 80
# And of what is beside a fact's name at a question.
MOST_AT_QUESTION = 40

# What each kind of release is called on the page; a two-stage release is described by its stages.
RELEASES: Mapping[str, str] = {
    "gaussian": "Gaussian noise",
    "poisson_gaussian": "Poisson-sampled Gaussian noise",
    "fixed_size_gaussian": "Gaussian noise on samples of a fixed size",
    "random_allocation_gaussian": "Gaussian noise, each provider in one round of each cycle",
    "laplace": "Laplace noise",
    "fedavg_laplace": "FedAvg with Laplace noise",
    "admm_laplace": "ADMM with Laplace noise",
}

# The checks that bear on a question, by their ids in `evaluator.records.check_table`.
CHECKS_OF: Mapping[str, tuple[str, ...]] = {
    "unit": ("record.track_rules",),
    "releases": ("record.bytes", "record.tensors", "record.other_uses"),
    "sensitivity": ("record.linkage", "record.whole_change", "record.alignment"),
    "noise": ("record.noise_size", "record.noise_reuse", "record.noise_shape", "record.whole_change"),
    "sampling": ("record.clients", "record.providers"),
    "empty_rounds": ("record.rounds", "record.clients"),
    "composition": ("record.rounds", "record.models"),
    "conversion": ("record.track_rules",),
    "recomputed": ("record.budget",),
    "tuning": ("team.declared_runs", "record.other_uses"),
    "multiple_releases": ("team.declared_runs", "team.joint_epsilon"),
}

# The questions on which a cited file of the kit bears beside `code`, by the beginnings of paths.
FILES_OF: Mapping[str, tuple[str, ...]] = {
    "unit": ("evaluator/mechanisms/units.py",),
    "adversary": ("starter_kit/secure_aggregation/", "starter_kit/federation/secure_aggregation.py"),
    "sensitivity": (
        "starter_kit/dp/clipping.py",
        "starter_kit/dp/gaussian_sum.py",
        "starter_kit/dp/laplace_release.py",
    ),
    "isolation": ("starter_kit/federation/client", "starter_kit/learning/local_training.py"),
    "noise": (
        "starter_kit/dp/gaussian_sum.py",
        "starter_kit/dp/grid.py",
        "starter_kit/dp/keystream.py",
        "starter_kit/dp/laplace",
        "starter_kit/dp/noise.py",
        "evaluator/mechanisms/noise.py",
    ),
    "adaptivity": ("starter_kit/methods/adaptive_clipping.py",),
    "new_mechanisms": ("starter_kit/compression/",),
    "sampling": (
        "starter_kit/dp/allocation.py",
        "starter_kit/dp/sampling.py",
        "evaluator/mechanisms/sampling.py",
    ),
    "empty_rounds": ("starter_kit/federation/rounds.py",),
    "composition": ("starter_kit/federation/rounds.py", "evaluator/mechanisms/events.py"),
    "conversion": ("starter_kit/dp/guarantee.py", "evaluator/accounting/"),
}


# What the accounting of a record states.
STATED: tuple[StatedFact[AccountingResult], ...] = (
    StatedFact(
        "releases",
        "Releases and their noise",
        ("noise", "sampling", "composition"),
        lambda result: "; ".join(map(in_words, result.events)),
    ),
    StatedFact(
        "rounds", "Rounds accounted for", ("composition", "empty_rounds"), lambda result: f"{result.rounds:,}"
    ),
    StatedFact("clip_norm", "Clip norm", ("sensitivity", "adaptivity"), lambda result: clip_norm(result)),
    StatedFact("delta", "δ", ("conversion",), lambda result: power_of_ten(result.delta)),
    StatedFact("accountant", "Accountant", ("conversion",), lambda result: result.accountant),
    StatedFact("claimed", "ε claimed", ("recomputed",), lambda result: rounded_up(result.epsilon_claimed)),
    StatedFact("recomputed", "ε recomputed", ("recomputed",), lambda result: recomputed(result)),
    StatedFact(
        "declared",
        "Tuning runs declared in the record",
        ("tuning",),
        lambda result: f"{result.tuning_runs:,}",
    ),
)


@dataclass(frozen=True)
class Cell:
    """What is known of a fact in one run, with the check that it comes from, if it comes from one, and its status.

    A check that passed with hardly any power is to look at like one that has none.
    """

    text: str = ""
    status: str = ""
    badge: CheckStatus | None = None
    check: Check | None = None


@dataclass(frozen=True)
class Fact:
    """A row of the table: what is known in each run, and the questions of the checklist that it bears on."""

    key: str
    title: str
    items: tuple[str, ...]
    cells: tuple[Cell, ...]
    is_check: bool = False

    @property
    def questions(self) -> list[tuple[str, str]]:
        """The keys of the questions, each with a short name."""
        return [(key, key.replace("_", " ")) for key in self.items]

    @property
    def is_long(self) -> bool:
        """Whether its texts need a line of their own, as the columns of the runs are too narrow for them."""
        most = MOST_IN_COLUMN if len(self.texts) > 1 else MOST_IN_ROW
        return any(len(cell.text) > most for cell in self.cells)

    @property
    def short_cells(self) -> list[Cell]:
        """The cells, without their texts where these are long."""
        cells = (replace(cell, check=None) for cell in self.cells)
        return [replace(cell, text="") if self.is_long else cell for cell in cells]

    @property
    def texts(self) -> list[tuple[list[int], str]]:
        """Each text once, with the places of the runs that have it."""
        found: dict[str, list[int]] = {}
        for place, cell in enumerate(self.cells):
            found.setdefault(cell.text, []).append(place)
        return [(places, text) for text, places in found.items()]

    @property
    def in_short(self) -> str:
        """What is known in all runs: how checks ended, or the texts; empty where that is long."""
        values = dict.fromkeys(cell.status if self.is_check else cell.text for cell in self.cells)
        text = "; ".join(filter(None, values))
        return text if len(text) <= MOST_AT_QUESTION else ""

    @property
    def is_passed(self) -> bool:
        """Whether it is a check that has passed in every run that has it."""
        found = [cell.badge for cell in self.cells if cell.badge]
        return self.is_check and set(found) == {CheckStatus.PASSED}

    @property
    def is_flagged(self) -> bool:
        """Whether it is worth a look in some run: a check that hasn't passed, or cited code that isn't the kit's."""
        return any(cell.badge not in (None, CheckStatus.PASSED) for cell in self.cells)

    @property
    def worst(self) -> Cell:
        """The cell to look at first: one of a check that hasn't passed, if there is one."""
        return next((one for one in self.cells if one.badge not in (None, CheckStatus.PASSED)), self.cells[0])


@dataclass(frozen=True)
class FactTable:
    """What the platform knows of the runs: each fact once, by ε."""

    runs: list[str]
    facts: list[Fact]

    @property
    def rows(self) -> list[tuple[Fact, list[tuple[Cell, list[str]]], list[tuple[str, str]]]]:
        """The facts, each with its cells and the neighboring runs that share them, and its texts with theirs."""
        return [(fact, self._shared(fact), self._texts(fact)) for fact in self.facts]

    @property
    def tally(self) -> str:
        """How many checks ended in each way, by their worst run."""
        return tally([fact.worst.check for fact in self.facts if fact.worst.check])

    @property
    def warnings(self) -> list[Fact]:
        """The facts worth a look that aren't checks, which the tally leaves out."""
        return [fact for fact in self.facts if fact.is_flagged and not fact.is_check]

    def _shared(self, fact: Fact) -> list[tuple[Cell, list[str]]]:
        by_run = zip(self.runs, fact.short_cells, strict=True)
        return [(cell, [run for run, _ in same]) for cell, same in groupby(by_run, itemgetter(1))]

    def _texts(self, fact: Fact) -> list[tuple[str, str]]:
        return [(", ".join(self.runs[at] for at in places), text) for places, text in fact.texts]

    def bearing_on(self, item: str) -> list[Fact]:
        """Return the facts that bear on a question of the checklist."""
        return [fact for fact in self.facts if item in fact.items]


def facts_on(submission: Submission, runs: Sequence[RunStatus], proof: Artifact | None) -> FactTable:
    """Return what is known of the runs, the team and the code, in a few queries beside those of `runs`."""
    facts = [
        *_stated(runs),
        *_declared(runs),
        *_checked(runs),
        *_tokens(submission, len(runs)),
        *_code(submission, proof, len(runs)),
    ]
    return FactTable([f"{status.run.budget:g}" for status in runs], facts)


def _code(submission: Submission, proof: Artifact | None, runs: int) -> Iterable[Fact]:
    if proof:
        yield _cited(named_code(proof.upload), runs)
    attached = code_files(submission).count()
    text = submission.code_url or "no link"
    text += f"; {attached} attached file{'' if attached == 1 else 's'}"
    yield Fact("method_code", "Code of the method", ("code",), (Cell(text),) * runs)


def _cited(named: NamedCode | None, runs: int) -> Fact:
    """Return how the cited files compare with the kit's; those that differ bear on what the kit's files are for."""
    text = named.summary if named else "The proof's front matter names no files with hashes"
    different = named.different if named else []
    cell = (
        Cell(text, f"{file_count(different)} not the kit's", CheckStatus.FLAGGED) if different else Cell(text)
    )
    paths = [file.path for file in different]
    items = [key for key, starts in FILES_OF.items() if any(path.startswith(starts) for path in paths)]
    return Fact("named_code", "Code cited in the proof", (*items, "code"), (cell,) * runs)


def recomputed(result: AccountingResult) -> str:
    """Return the recomputed ε, with how far it is from the claimed one."""
    difference = result.epsilon - result.epsilon_claimed
    return f"{rounded_up(result.epsilon)} ({difference:+.2g})" if difference else rounded_up(result.epsilon)


def clip_norm(result: AccountingResult) -> str:
    """Return the clip norm of the rounds, or the smallest and the largest; empty where the report has none."""
    return " to ".join(dict.fromkeys(f"{norm:g}" for norm in result.clip_norms or ()))


def in_words(event: Event) -> str:
    """Return a release in words: its rounds, rates and noise. The noise is relative to the sensitivity."""
    rounds = f"{event.total_rounds:,} round{'' if event.total_rounds == 1 else 's'}"
    if isinstance(event, TwoStage):
        return f"{rounds}: client rate {event.client_rate:g}; within a client, {_parameters(event.within)}"
    return f"{rounds}: {_parameters(event)}"


def _parameters(event: Event) -> str:
    """Return the parameters of a release, all but its rounds, privacy unit and adjacency."""
    values = event.model_dump(exclude={"type", "unit", "adjacency", "rounds"})
    listed = (f"{name.replace('_', ' ')} {value:g}" for name, value in values.items())
    return ", ".join([RELEASES[event.type], *listed])


def _accounting(status: RunStatus) -> AccountingResult | None:
    result = next((step.result for step in status.steps if step.step is Step.ACCOUNTING), {})
    try:
        return AccountingResult.model_validate(result) if result else None
    except ValidationError:
        # The report of an evaluator of another version: the page has the other evidence.
        return None


def _stated(runs: Sequence[RunStatus]) -> Iterable[Fact]:
    results = [_accounting(status) for status in runs]
    if not any(results):
        return
    for one in STATED:
        cells = tuple(Cell(one.text(result)) if result else Cell() for result in results)
        yield Fact(one.key, one.title, one.items, cells)


def _declared(runs: Sequence[RunStatus]) -> Iterable[Fact]:
    found = declared_of(status.run for status in runs)
    if not found:
        return
    texts = [found.get(status.run.pk, {}) for status in runs]
    for one in DECLARED:
        yield Fact(one.key, one.title, one.items, tuple(Cell(text.get(one.key, "")) for text in texts))


def _of_check(shown: ShownCheck) -> Cell:
    if shown.has_hardly_any_power:
        return Cell(shown.found, HARDLY_ANY_POWER, CheckStatus.NO_POWER, shown.check)
    return Cell(shown.found, shown.status, shown.check.status, shown.check)


def _checked(runs: Sequence[RunStatus]) -> Iterable[Fact]:
    shown = [{check.check.id: check for check in shown_checks(status.run)} for status in runs]
    for id_ in dict.fromkeys(id_ for ids in CHECKS_OF.values() for id_ in ids):
        found = [checks.get(id_) for checks in shown]
        name = next((check.name for check in found if check), "")
        items = tuple(key for key, ids in CHECKS_OF.items() if id_ in ids)
        cells = tuple(_of_check(check) if check else Cell() for check in found)
        if name:
            yield Fact(id_, name[:1].upper() + name[1:], items, cells, is_check=True)


def _tokens(submission: Submission, runs: int) -> Iterable[Fact]:
    own = RunToken.objects.filter(team=submission.team_id, track=submission.track_id)
    tokens = own.aggregate(issued=Count("pk"), used=Count("run"), drawn=Count("challenged_at"))
    if tokens["issued"]:
        text = (
            f"{tokens['issued']} issued, {tokens['used']} used by a run, "
            f"{tokens['drawn'] - tokens['used']} with an unresolved challenge"
        )
        items = ("tuning", "multiple_releases")
        yield Fact("tokens", "Run tokens of the team in this track", items, (Cell(text),) * runs)
