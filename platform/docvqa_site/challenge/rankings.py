"""The kinds of tracks: what runs are ranked by, and everything that follows from it.

A kind is a value. Boards, pages, exports and the API read its fields, so that a new one is a rule in
`evaluator.messages.rankings` and an instance here; see "Add a kind of track" in CONTRIBUTING.md.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.safestring import SafeString

from docvqa_site.ui.rounding import epsilon_text, gain_note
from docvqa_site.ui.templatetags.ui import readable_bytes
from evaluator.messages import rankings as rules
from evaluator.messages.jobs import ArtifactKind, TrustLevel
from evaluator.messages.rankings import BUDGET, Limits, RankingRule, Unmet
from evaluator.messages.results import MOST_DECIMALS
from evaluator.scoring.metrics import cut, score_gain

# From here on, tenths of a factor say nothing more.
MANY_TIMES = 100


def _no_gain(_: float, __: float, ___: int, ____: str) -> str:
    return ""


def _times_as_many(value: float, other: float, _: int, name: str) -> str:
    if not 0 < value < other:
        return ""
    factor = other / value
    shown = f"{factor:,.0f}" if factor >= MANY_TIMES else f"{factor:.1f}"
    return f"{name} sent {shown}× as many bytes"


def _above(value: float, other: float, decimals: int, name: str) -> str:
    more = score_gain(value, other, decimals)
    note = gain_note(value, other, decimals)
    if more > 0:
        return f"{more} above {name}{note and f', {note}'}"
    return f"less than {10.0**-decimals:.{decimals}f} above {name}" if value > other else ""


@dataclass(frozen=True)
class Result:
    """The words for a result that ranks runs.

    Attributes:
        title: Of columns and axes.
        noun: In a sentence before a value, and in a few signs before a value.
        missing: The sentence where there is no value, and that in a few signs.
        text: A value as pages show it, scores with so many decimals.
        best: What comes first where the result orders a board, and where it breaks ties.
        figure: What a value of this result by itself is called.
        order: How it orders runs, after "ranked by".
        gain: By how much a value beats another of this name; empty where it doesn't.
        in_bytes: Whether values are numbers of bytes, which span several orders of magnitude.
    """

    title: str
    noun: tuple[str, str]
    missing: tuple[str, str]
    text: Callable[[Any, int], str]
    best: tuple[str, str] = ("", "")
    figure: str = "{}"
    order: str = ""
    gain: Callable[[float, float, int, str], str] = _no_gain
    in_bytes: bool = False


@dataclass(frozen=True)
class Limit:
    """The words for a limit: its name, and a value as pages show it."""

    noun: str
    text: Callable[[float], str]


@dataclass(frozen=True)
class Shortfall:
    """Why a run has no rank: as a sentence, and in a few signs for a table.

    `is_invalid` says that the organizers or an examination found the run invalid, whatever its results.
    """

    sentence: str
    short: str
    is_invalid: bool = False

    def __str__(self) -> str:
        return self.sentence


def threshold_text(threshold: float) -> str:
    """Return a threshold of scores, which has at most four decimals."""
    return f"{threshold:.4f}"


RESULTS = {
    "anls": Result(
        title="ANLS",
        noun=("ANLS", "ANLS"),
        missing=("ANLS is missing", "no ANLS"),
        text=cut,
        best=("highest ANLS", "higher ANLS"),
        figure="ANLS {}",
        order="ANLS, highest first",
        gain=_above,
    ),
    "bytes_total": Result(
        title="Communication",
        noun=("communication of", "bytes"),
        missing=("the number of bytes is missing", "no byte count"),
        text=lambda size, _: readable_bytes(size),
        best=("fewest bytes of communication", "fewer bytes of communication"),
        order="bytes of communication, fewest first",
        gain=_times_as_many,
        in_bytes=True,
    ),
    "epsilon": Result(
        title="ε",
        noun=("recomputed ε =", "ε"),
        missing=("ε is missing", "no ε"),
        text=lambda epsilon, _: epsilon_text(epsilon),
    ),
}
LIMITS = {
    "anls_threshold": Limit("threshold", threshold_text),
    BUDGET: Limit("budget", "{:g}".format),
}


# The limit of a board that isn't there, because its budget was removed: this budget. None for any other.
REMOVED_BUDGET = "removed_budget"
# The state of a run that the organizers disqualified, in place of its own.
DISQUALIFIED = "disqualified"
# What any run may have for an examination.
EXAMINED = (ArtifactKind.SETTINGS, ArtifactKind.METHOD_FILE)


# There is one instance of each kind, so identity is equality.
@dataclass(frozen=True, eq=False)
class Ranking:
    """A kind of track.

    Attributes:
        rule: What orders runs, and what a rank takes.
        label: The kind in a few words.
        run_artifacts: The files that every run needs, in the order in which a draft asks for them.
        optional_artifacts: The files that a run may have, which nobody needs for a score.
        submission_artifacts: The files of the submission as a whole.
        examined_for: The trust levels that a phase may require of its first ranks.
        unexamined: What a phase risks that requires no examination.
        practice_note: What practice costs a team.
        scored_note: What a team no longer needs once a run is scored.
        fields: The rules of a track that apply to this kind and not to every one, as fields of `Track`.
        note: What follows the sentence about the ranking; it may name `reviews` (two reviewers) and `delta`.
        legend: How to read its boards, in sentences; a `SafeString` is HTML.
        legend_of_ranks: How to read those with ranks, which an overview of all budgets isn't.
        config: The kit's config with which its page shows how to train.
        submit_options: What `pfl submit` needs besides.
        draft_steps: What else a team does in the browser before it submits, in sentences.
        training_note: What else `pfl train` does there, in a sentence.
        challenged: Which uploads trigger a challenge, and what the site picks in it.
    """

    rule: RankingRule
    label: str
    run_artifacts: tuple[ArtifactKind, ...] = (ArtifactKind.CHECKPOINT, ArtifactKind.COMMUNICATION_LOG)
    optional_artifacts: tuple[ArtifactKind, ...] = EXAMINED
    submission_artifacts: tuple[ArtifactKind, ...] = ()
    examined_for: tuple[TrustLevel, ...] = (TrustLevel.RERUN,)
    unexamined: str = ""
    practice_note: str = ""
    scored_note: str = ""
    fields: tuple[str, ...] = ()
    note: str = ""
    legend: tuple[str, ...] = ()
    legend_of_ranks: tuple[str, ...] = ()
    config: str = "fedavg"
    submit_options: str = ""
    draft_steps: tuple[str, ...] = ()
    training_note: str = ""
    challenged: str = (
        "Each new transcript of a large run triggers one: the site picks the rounds whose messages your team must "
        "upload."
    )

    @property
    def key(self) -> str:
        """The word that the database stores."""
        return self.rule.key

    @property
    def has_budgets(self) -> bool:
        """Whether there is a board for each privacy budget."""
        return BUDGET in self.rule.at_most.values()

    @property
    def is_accounted(self) -> bool:
        """Whether ε is recomputed from training records."""
        return self.rule.is_accounted

    def counting(self, *, requires_counted: bool) -> str:
        """Return which bytes rank in a phase, in words; empty where bytes don't rank."""
        if not self.rule.ranks_bytes:
            return ""
        return (
            "only counted bytes are ranked" if requires_counted else "counted and declared bytes are ranked"
        )

    @property
    def needs_proof(self) -> bool:
        """Whether submissions have a privacy proof, which reviewers decide on."""
        return ArtifactKind.PRIVACY_PROOF in self.submission_artifacts

    @property
    def is_reviewed(self) -> bool:
        """Whether reviewers decide on proofs: the first run with an accepted one is named beside the first run."""
        return self.needs_proof

    def best_heading(self, *, has_best: bool) -> str:
        """Return what stands above the leaders of a track, of which any `has_best`, whether proofs decide or not."""
        return "Best with an accepted proof" if self.is_reviewed and has_best else "Current best"

    @property
    def no_leader(self) -> str:
        """What stands in place of a board's leader while there is none."""
        return "No run with an accepted proof yet." if self.is_reviewed else "No ranked runs yet."

    @property
    def shows_way(self) -> bool:
        """Whether the page of a track draws the way of a run to its rank, which has more than the evaluation."""
        return self.needs_proof

    @property
    def first(self) -> str:
        """The name of the result that decides first."""
        return self.rule.terms[0][0]

    @property
    def thresholds(self) -> list[str]:
        """The fields of a track that bound results."""
        return [limit for _, limit, _ in self.rule.limits if limit != BUDGET]

    def shortfall(
        self,
        results: Any,
        limits: Limits,
        *,
        disqualified: str = "",
        rejected: str = "",
        requires_counted: bool = False,
        is_log_accepted: bool = False,
    ) -> Shortfall | None:
        """Return everything that keeps a run from a rank, or a decision that took it; None if nothing does.

        Args:
            disqualified: The organizers' reason; empty unless they disqualified it.
            rejected: The reviewers' reason; empty unless they reject its proof.
            requires_counted: Whether its phase ranks counted bytes alone.
            is_log_accepted: Whether an organizer has accepted its declared log in spite of a flag.
        """
        if disqualified:
            return Shortfall(f"disqualified by the organizers: {disqualified}", DISQUALIFIED, is_invalid=True)
        if rejected:
            return Shortfall(rejected, "proof rejected")
        if results.failed_level is not None:
            level = TrustLevel(results.failed_level)
            return Shortfall(
                f"it failed the {level.examination}: {results.failed_because}",
                f"failed the {level.examination}",
                is_invalid=True,
            )
        found = []
        if (removed := limits.get(REMOVED_BUDGET)) is not None:
            found.append(Shortfall(f"ε = {removed:g} is no longer a budget of this track", "budget removed"))
        if unmet := self.rule.unmet(results, limits):
            found.append(_in_words(unmet, results.decimals))
        if self.rule.is_uncounted(results, requires_counted=requires_counted):
            found.append(_uncounted(results.not_counted_because))
        if self.rule.is_doubtful(results, is_log_accepted=is_log_accepted):
            found.append(_doubtful(results.log_flag))
        if self.rule.is_unconfirmed(results, limits):
            found.append(_unbound(results.unbound))
        return _together(found) if found else None

    @property
    def best(self) -> str:
        """What comes first, such as "Highest ANLS"."""
        words, _ = self.words.best
        return words[0].upper() + words[1:]

    @property
    def words(self) -> Result:
        """The words for the result that decides first."""
        return RESULTS[self.first]

    def figure(self, value: float, anls: float | None, decimals: int = MOST_DECIMALS) -> str:
        """Return a value of the result that decides first, in words; of another one than the score, with the score."""
        figure = self.words.figure.format(self.words.text(value, decimals))
        return figure if self.first == "anls" or anls is None else f"{figure} at ANLS {cut(anls, decimals)}"

    def sentence(self, limits: Limits) -> str:
        """Return what ranks, as "Runs are ranked by ANLS, highest first."; a limit that has no value is named."""
        conditions = " and".join(_condition(*limit, limits) for limit in self.rule.limits)
        return f"Runs{conditions} are ranked by {self.words.order}."

    @property
    def ties(self) -> str:
        """What decides between equal results, as a sentence."""
        ties = [f"run with {RESULTS[name].best[1]}" for name, _ in self.rule.terms[1:]]
        return f"Ties go to the {', then to the '.join([*ties, 'earlier submission'])}."


def _condition(result: str, limit: str, is_least: bool, limits: Limits) -> str:
    noun, words = RESULTS[result].noun[0], LIMITS[limit]
    whose = f" whose {noun.removesuffix(' =')}"
    bound = limits[limit]
    if bound is None:
        return f"{whose} {'reaches' if is_least else 'is within'} the {words.noun}"
    return f"{whose} is at {'least' if is_least else 'most'} {words.text(bound)}"


def _together(found: Sequence[Shortfall]) -> Shortfall:
    return Shortfall("; ".join(one.sentence for one in found), ", ".join(one.short for one in found))


def _uncounted(because: str) -> Shortfall:
    return Shortfall(
        f"the bytes are declared, not counted: {because or 'the run has no transcript'}", "bytes not counted"
    )


def _doubtful(check: str) -> Shortfall:
    """Return that an organizer has to look at the log, because of this check."""
    return Shortfall(
        f"check {check} flagged the run, and no organizer has accepted its log yet",
        f"log flagged ({check.partition('.')[2].replace('_', ' ')})",
    )


def _unbound(check: str) -> Shortfall:
    """Return that nothing shows that the run's sums led to its checkpoint, because of how this check ended."""
    replay, rerun = TrustLevel.REPLAYED.examination, TrustLevel.RERUN.examination
    return Shortfall(
        f"nothing shows that noised sums led to the checkpoint (check {check}), and no {replay} or {rerun} has "
        "confirmed the run",
        f"unbound ({check.removeprefix('record.').replace('_', ' ')})",
    )


def _in_words(unmet: Unmet, decimals: int) -> Shortfall:
    result = RESULTS[unmet.result]
    if unmet.value is None:
        return Shortfall(*result.missing)
    limit = LIMITS[unmet.limit]
    found, bound = result.text(unmet.value, decimals), limit.text(unmet.bound)
    compared, sign = ("is below", "<") if unmet.is_least else ("exceeds", ">")
    sentence, short = result.noun
    return Shortfall(
        f"{sentence} {found} {compared} the {limit.noun} of {bound}", f"{short} {found} {sign} {bound}"
    )


_RANGES = (
    "“Could be 1–2” lists the ranks that are consistent with the intervals, and “intervals overlap” marks a lead that "
    "they don't confirm. Both are conservative: all runs answer the same questions, so their scores vary together, and "
    "a comparison of two methods can still show that one is higher."
)
_SCORED = "Scored: the results are available. This track requires no proof, so there is no review."
_UNDER_REVIEW = (
    "Under review: reviewers have yet to accept the privacy proof. Proof accepted: enough of them have, which doesn't "
    "show that the training ran as its record describes. Exports call these provisional and verified."
)
_UNBOUND = SafeString(
    "A run is <em>unbound</em> if the checks can't tie its checkpoint to the noised sums (each round's sum of updates "
    "plus noise) recorded for it. This happens if at least one of these is true:"
    "<ul><li>The update rule can't be replayed.</li>"
    "<li>The check <code>record.linkage</code>, <code>record.whole_change</code> or <code>record.noise_shape</code> "
    "flagged the run or had no power (couldn't have detected a relevant deviation, for example because a codec rounded "
    "the noise).</li>"
    "<li>The check <code>record.alignment</code> flagged the run.</li>"
    "</ul>"
)

FEWEST_BYTES = Ranking(
    rules.FEWEST_BYTES,
    "fewest bytes at an ANLS threshold",
    optional_artifacts=(*EXAMINED, ArtifactKind.TRANSCRIPT, ArtifactKind.MESSAGES, ArtifactKind.CODEC_FILE),
    fields=("anls_threshold", "first_download", "drawn_rounds", "challenges_per_day"),
    legend=(
        _SCORED,
        "Counted bytes are exact. Qualification is less certain: if the ANLS interval extends below the threshold, the "
        "run might not qualify on a different sample of providers.",
        "Counted: the evaluator computed the checkpoint from the run's messages; for a large run, it computed the last "
        "round and several others, picked at random. Declared: the bytes come from the team's log.",
    ),
)
BEST_ANLS_AT_BUDGET = Ranking(
    rules.BEST_ANLS_AT_BUDGET,
    "best ANLS at each privacy budget",
    # The annex is made from the challenge that is drawn for the record.
    run_artifacts=(ArtifactKind.TRAINING_RECORD, ArtifactKind.TRAINING_ANNEX, *FEWEST_BYTES.run_artifacts),
    optional_artifacts=(*EXAMINED, ArtifactKind.ROUND_OPENING),
    submission_artifacts=(ArtifactKind.PRIVACY_PROOF,),
    examined_for=(TrustLevel.REPLAYED, TrustLevel.RERUN),
    unexamined="None. Runs are ranked without a replay or rerun, so a forged record that passes every check can be "
    "ranked",
    practice_note="It spends the run token of its training record, and the record's challenge flags all later runs of "
    "the team until the same record is submitted for a rank.",
    scored_note="The run folder's `vectors` were only needed for the annex: you can delete them.",
    config="fl-provider-dp",
    submit_options=" --proof proof.md",
    draft_steps=(
        "Register the key that signs your training records on your team's page. `pfl key show` prints it.",
        "For each run, choose its folder: each file goes to its place by its name, the training record first. The "
        "draft then shows the command that creates the annex. Run it in a terminal, in the run folder, and choose the "
        "folder again.",
        "Add the privacy proof. `pfl describe` drafts it from the run folder, with gaps that you fill in.",
    ),
    training_note="`pfl train` gets the run token and signs the training record automatically.",
    challenged="Each new training record triggers one: the site picks the parts of the noised sums that your team must "
    "show.",
    fields=(
        "budgets",
        "delta",
        "sampling_rule",
        "accountant",
        "adjacency",
        "providers_per_client",
        "data_sha256",
        "unbound_level",
        "drawn_rounds",
        "challenges_per_day",
        "required_reviews",
        "first_download",
    ),
    note="ε is computed at δ = {delta}. A result stays under review until its proof is accepted by {reviews}.",
    legend=(_RANGES, _UNDER_REVIEW, "ε is recomputed from the training record and rounded up.", _UNBOUND),
    legend_of_ranks=(
        "“More columns” above the board shows ε under every rule and accountant; the bold value is used for ranking. A "
        "column that equals another one in every row is left out, with a note below the board.",
    ),
)
BEST_ANLS = Ranking(
    rules.BEST_ANLS,
    "best ANLS",
    optional_artifacts=FEWEST_BYTES.optional_artifacts,
    fields=("first_download", "drawn_rounds", "challenges_per_day"),
    legend=(_RANGES, _SCORED),
)
RANKINGS = {kind.key: kind for kind in (FEWEST_BYTES, BEST_ANLS_AT_BUDGET, BEST_ANLS)}
WITH_PROOFS = [key for key, kind in RANKINGS.items() if kind.needs_proof]
OF_ONE_KIND = frozenset(field for kind in RANKINGS.values() for field in kind.fields)


def choices() -> list[tuple[str, str]]:
    """Return the kinds as a form offers them. Migrations name this function, so that a new kind needs none."""
    return [(key, kind.label) for key, kind in RANKINGS.items()]
