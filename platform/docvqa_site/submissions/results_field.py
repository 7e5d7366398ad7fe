"""The database column of a run's results: a JSON document in the database, a `RunResults` in Python.

Its scores are cut to four decimals, and their intervals rounded outward to three, before they are stored: exact scores
of many submissions would reveal the answers to single questions of the secret test set. Scores by type of question,
which are over fewer questions, have two decimals. So nothing that reads the column can show more digits than that, nor
rank by them. The reports of the steps have the exact ones, for organizers.

The checks and the scores by type are most of the document. Tables of many runs load the rest of it, and the number of
flagged checks, which is stored beside them; results in Python count their own.
"""

from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Expression, Func, JSONField, Model
from django.db.models.fields.json import KeyTransform
from django.db.models.sql.compiler import SQLCompiler

from docvqa_site.ui.rounding import outward_high, outward_low
from evaluator.messages.results import QuestionTypeScore, RunResults
from evaluator.scoring.metrics import cut

# The number of flagged checks, in a document that has some.
FLAGGED = "flagged_checks"
SCORES = ("anls", "accuracy", "public_anls", "public_accuracy")


class ResultsField(JSONField[RunResults, RunResults]):
    """Results that are None or empty are left out of the document, so that its keys say which there are."""

    def pre_save(self, model_instance: Model, add: bool) -> Any:
        """Return what is stored of the instance, which has it from now on, too."""
        value = super().pre_save(model_instance, add)
        if isinstance(value, RunResults):
            value = with_shown_scores(value)
            setattr(model_instance, self.attname, value)
        return value

    def from_db_value(
        self, value: str | None, expression: Expression, connection: BaseDatabaseWrapper
    ) -> Any:
        """Return the column's document as `RunResults`, and a lookup of one of its keys as it is."""
        # An outer join yields no document where there is no run.
        if value is None or isinstance(expression, KeyTransform):
            return super().from_db_value(value, expression, connection)
        return RunResults.model_validate_json(value)

    def get_db_prep_value(self, value: Any, connection: BaseDatabaseWrapper, prepared: bool = False) -> Any:
        return super().get_db_prep_value(_document(value), connection, prepared)

    def to_python(self, value: Any) -> RunResults:
        """Return the results that a document holds. Raises `ValueError` where it holds anything else."""
        return RunResults.model_validate(value)

    def value_to_string(self, obj: Model) -> Any:
        """Return what `manage.py dumpdata` writes, which `to_python` reads."""
        return _document(self.value_from_object(obj))


class WithoutChecks(Func):
    """The results of a column, without the checks and the scores by type of question."""

    output_field = ResultsField()

    def as_postgresql(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper) -> Any:
        return self.as_sql(
            compiler, connection, template="(%(expressions)s - '{checks,question_types}'::text[])"
        )

    def as_sqlite(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **_: Any) -> Any:
        return self.as_sql(
            compiler, connection, template="json_remove(%(expressions)s, '$.checks', '$.question_types')"
        )


def with_shown_scores(results: RunResults) -> RunResults:
    """Return the results with scores of four decimals and intervals of three, which contain the exact ones.

    Those by type of question have two of each.
    """
    low, high = results.anls_low, results.anls_high
    scores = {name: getattr(results, name) for name in SCORES}
    return results.model_copy(
        update={
            **{name: None if score is None else float(cut(score)) for name, score in scores.items()},
            "anls_low": None if low is None else outward_low(low),
            "anls_high": None if high is None else outward_high(high),
            "question_types": [_with_two_decimals(one) for one in results.question_types],
        }
    )


def _with_two_decimals(one: QuestionTypeScore) -> QuestionTypeScore:
    shown = {
        "anls": outward_low(one.anls, 2),
        "anls_low": outward_low(one.anls_low, 2),
        "anls_high": outward_high(one.anls_high, 2),
    }
    return one.model_copy(update=shown)


def _document(value: Any) -> Any:
    if not isinstance(value, RunResults):
        return value
    document = value.model_dump(mode="json", exclude_defaults=True)
    return document | {FLAGGED: value.flagged_checks} if value.flagged_checks else document
