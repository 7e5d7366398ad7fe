"""The forms of the reviewers' desk and of the team's page about its proof."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from django import forms
from django.db.models import Count, Q, QuerySet
from django.forms import BoundField
from typing_extensions import override

from docvqa_site.accounts.models import User
from docvqa_site.proofs.outline import Section
from docvqa_site.reviews.appeals import MAX_APPEAL
from docvqa_site.reviews.checklist import CHECKLIST, Answer, Group
from docvqa_site.reviews.deadlines import SECOND_OPINION_TIME, default_due, is_in_reach
from docvqa_site.reviews.drafts import MAX_NOTE, MAX_REASON, Draft, EarlierAnswer, note_name
from docvqa_site.reviews.evidence import Fact, FactTable
from docvqa_site.reviews.models import Decision, ProofReview, Recusal
from docvqa_site.reviews.threads import GENERAL, MAX_MESSAGE, QUESTIONS, Thread, ThreadLine

ANSWERS = [(answer.value, answer.value) for answer in Answer]


@dataclass(frozen=True)
class PageAnchor:
    """A place on the page where something is missing or wrong: its id, its name, and the error there."""

    anchor: str
    name: str
    error: str


@dataclass(frozen=True)
class ChecklistQuestion:
    """An item of the checklist on the page: its fields, what the platform knows, and what was written about it.

    `state` is the answer that the form shows, empty for none; only the first question without one is unfolded.
    `earlier` is what the reviewer answered about an earlier version, and `section` the proof's on its subject.
    """

    key: str
    answer: BoundField
    note: BoundField
    facts: list[Fact]
    lines: list[ThreadLine]
    state: str
    is_open: bool
    earlier: EarlierAnswer | None
    section: Section | None

    @property
    def anchor(self) -> str:
        """The id of its part of the page."""
        return f"item-{self.key}"

    @property
    def is_answered_by_team(self) -> bool:
        """Whether the team wrote the last message on it."""
        return bool(self.lines) and self.lines[-1].by_team

    @property
    def offer(self) -> str:
        """A sentence on the passed checks that speak for "yes"; empty if a fact speaks against it or there is none."""
        checks = [fact for fact in self.facts if fact.is_check]
        if not checks or any(fact.is_flagged for fact in self.facts):
            return ""
        support = "check supports" if len(checks) == 1 else "checks support"
        return f"The passed {support} “yes”; the decision is yours."


class ReviewForm(forms.Form):
    """An answer and a note for each item, named by its key. What is required when is for `services.decide` to say."""

    reason = forms.CharField(
        label="Explanation for the team",
        required=False,
        max_length=MAX_REASON,
        widget=forms.Textarea(attrs={"rows": 5}),
        help_text="If you reject, it is also public on the leaderboard, once the rejection removes the rank: as "
        f"soon as a second reviewer agrees, or after {SECOND_OPINION_TIME.days} days if nobody else decides.",
    )
    change_reason = forms.CharField(
        label="Why you changed your decision",
        required=False,
        max_length=MAX_REASON,
        widget=forms.Textarea(attrs={"rows": 3}),
        help_text="Plain text, visible to the team and never public.",
    )
    changes_due = forms.DateField(
        label="Revised proof due by",
        required=False,
        widget=forms.DateInput(attrs={"type": "date"}, format="%Y-%m-%d"),
        help_text="If you request changes, the team is asked to send a revised proof by this date.",
    )
    no_conflict = forms.BooleanField(
        label="I have no conflict of interest",
        required=False,
        help_text="I don't work with the authors, don't compete with them here, and have no other stake in the result.",
    )
    confirms_contradiction = forms.BooleanField(label="Yes, this is my decision", required=False)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for item in CHECKLIST:
            self.fields[item.key] = forms.ChoiceField(
                label=item.question,
                help_text=item.why,
                choices=ANSWERS,
                widget=forms.RadioSelect,
                required=False,
            )
            self.fields[note_name(item.key)] = forms.CharField(
                label="Note to the team (required with “no”)",
                required=False,
                max_length=MAX_NOTE,
                widget=forms.Textarea(attrs={"rows": 1}),
            )
        for field in self.fields.values():
            # Which ones are depends on the decision and the answers.
            field.widget.is_required_later = True

    def questions(self) -> list[BoundField]:
        """The fields of the checklist, in its order."""
        return [field for item in CHECKLIST for field in (self[item.key], self[note_name(item.key)])]

    def closing(self, *, has_decided: bool) -> list[BoundField]:
        """Return the fields that go with a decision: a first one, or one that replaces another."""
        names = ["reason", *(["change_reason"] if has_decided else []), "changes_due", "no_conflict"]
        names += ["confirms_contradiction"] if self["confirms_contradiction"].errors else []
        return [self[name] for name in names]

    @property
    def decision(self) -> Decision:
        """The decision that was chosen; `PENDING` if none was."""
        posted = self.data.get("decision")
        return Decision(posted) if posted in Decision.values else Decision.PENDING

    def draft(self) -> Draft:
        """Return what was written, from a valid form."""
        given = self.cleaned_data
        keys = [item.key for item in CHECKLIST]
        return Draft(
            answers={key: Answer(given[key]) for key in keys if given[key]},
            notes={key: given[note_name(key)] for key in keys if given[note_name(key)]},
            reason=given["reason"],
            change_reason=given["change_reason"],
            decision=self.decision,
            changes_due=given["changes_due"],
            declares_no_conflict=given["no_conflict"],
        )

    def clear_answers(self) -> None:
        """Remove the posted answers and notes: they are about an earlier version of the proof."""
        names = {name for item in CHECKLIST for name in (item.key, note_name(item.key))}
        self.data = {name: value for name, value in self.data.items() if name not in names}

    def places(self) -> list[PageAnchor]:
        """Return where something is missing or wrong, in the order of the page; those with the same error together."""
        questions = {item.key: item.question for item in CHECKLIST}
        notes = {note_name(key): f"Note on “{question}”" for key, question in questions.items()}
        order = [name for key in questions for name in (key, note_name(key))]
        order += [name for name in self.fields if name not in order]
        found = [
            PageAnchor(
                f"item-{name}" if name in questions else self[name].id_for_label,
                questions.get(name) or notes.get(name) or str(self[name].label),
                " ".join(map(str, self[name].errors)),
            )
            for name in order
            if self[name].errors
        ]
        errors = list(dict.fromkeys(place.error for place in found))
        return sorted(found, key=lambda place: errors.index(place.error))

    def groups(
        self,
        table: FactTable,
        threads: Iterable[Thread],
        earlier: Mapping[str, EarlierAnswer],
        sections: Mapping[str, Section],
    ) -> list[tuple[Group, list[ChecklistQuestion]]]:
        """Return the questions by group, each with the platform's facts, the messages on it and an earlier answer.

        `sections` are those of the proof, by the keys of the questions that they are about.
        """
        lines = {thread.item: thread.lines for thread in threads}
        states = {item.key: str(self[item.key].value() or "") for item in CHECKLIST}
        first = next((key for key, state in states.items() if not state), "")

        def question(key: str) -> ChecklistQuestion:
            answer, note = self[key], self[note_name(key)]
            is_open = key == first or bool(answer.errors or note.errors)
            return ChecklistQuestion(
                key,
                answer,
                note,
                table.bearing_on(key),
                lines.get(key, []),
                states[key],
                is_open,
                earlier.get(key),
                sections.get(key),
            )

        return [(group, [question(item.key) for item in CHECKLIST if item.group == group]) for group in Group]


def initial_of(draft: Draft) -> dict[str, Any]:
    """Return the values of the form's fields that show a draft."""
    return {
        **draft.answers,
        **{note_name(key): note for key, note in draft.notes.items()},
        "reason": draft.reason,
        "change_reason": draft.change_reason,
        "changes_due": draft.changes_due if is_in_reach(draft.changes_due) else default_due(),
        "no_conflict": draft.declares_no_conflict,
    }


class LongSelect(forms.Select):
    """A select whose options are written by one template: one for each of them takes a tenth of the desk's time."""

    template_name = "reviews/long_select.html"


class MessageForm(forms.Form):
    """A message to the other side."""

    item = forms.ChoiceField(
        label="About", choices=[("general", GENERAL), *QUESTIONS.items()], widget=LongSelect
    )
    text = forms.CharField(
        label="Message",
        max_length=MAX_MESSAGE,
        widget=forms.Textarea(attrs={"rows": 4}),
        help_text="Plain text.",
    )

    def about(self) -> str:
        """Return the key of the item that the message is about; empty if it is about none."""
        item: str = self.cleaned_data["item"]
        return item if item in QUESTIONS else ""


class AppealForm(forms.Form):
    """An appeal's text; `label` names what it is against."""

    text = forms.CharField(max_length=MAX_APPEAL, widget=forms.Textarea(attrs={"rows": 6}))

    def __init__(self, *args: Any, label: str = "Why the rejection is wrong", **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["text"].label = label


class RecusalForm(forms.Form):
    """Why a reviewer doesn't decide on a proof."""

    why = forms.ChoiceField(
        label="Reason",
        choices=Recusal.Why.choices,
        widget=forms.RadioSelect,
        error_messages={"required": "Choose why you can't review this proof."},
    )
    text = forms.CharField(
        label="Note to the organizers",
        required=False,
        max_length=500,
        widget=forms.Textarea(attrs={"rows": 2}),
        help_text="The team can't see this note.",
    )

    def __init__(self, *args: Any, effect: str = "", **kwargs: Any) -> None:
        """Offer those who have decided nothing but a conflict of interest, and let them confirm its `effect`."""
        super().__init__(*args, **kwargs)
        if effect:
            conflict = Recusal.Why.CONFLICT
            self.fields["why"] = forms.ChoiceField(
                label="Reason",
                choices=[(conflict.value, conflict.label)],
                initial=conflict.value,
                widget=forms.RadioSelect,
            )
            self.fields["withdraws"] = forms.BooleanField(
                label="Withdraw my decision",
                help_text=effect,
                error_messages={"required": "Confirm that your decision will be withdrawn."},
            )
            self.order_fields(["why", "text", "withdraws"])


class ReviewerField(forms.ModelChoiceField[User]):
    """A choice of a reviewer, each with the number of proofs that they are already asked to decide on."""

    @override
    def label_from_instance(self, obj: Any) -> str:
        return f"{obj} ({obj.assignments} open assignment{'' if obj.assignments == 1 else 's'})"


class AssignedForm(forms.Form):
    """Another day for somebody who is assigned, or the end of the assignment."""

    due = forms.DateField(
        label="Decide by", widget=forms.DateInput(attrs={"type": "date"}, format="%Y-%m-%d")
    )

    def __init__(self, assigned: QuerySet[ProofReview], *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["assigned"] = forms.ModelChoiceField(queryset=assigned, widget=forms.HiddenInput)


class AssignmentForm(forms.Form):
    """A reviewer and the day by which they are asked to decide."""

    due = forms.DateField(
        label="Decide by", widget=forms.DateInput(attrs={"type": "date"}, format="%Y-%m-%d")
    )

    def __init__(self, eligible: Iterable[User], *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        offered = User.objects.filter(pk__in=[user.pk for user in eligible]).order_by("name", "email")
        pending = Q(proof_reviews__assigned_at__isnull=False, proof_reviews__decision=Decision.PENDING)
        offered = offered.annotate(assignments=Count("proof_reviews", filter=pending))
        self.fields["reviewer"] = ReviewerField(queryset=offered, empty_label="Choose a reviewer")
        self.order_fields(["reviewer", "due"])
