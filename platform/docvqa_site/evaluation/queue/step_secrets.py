"""The secrets with which workers sign what they report, one for each step of each attempt.

They follow from the site's secret key, so that none is stored: whoever reads the database can't forge a report.
"""

from uuid import UUID

from django.conf import settings
from django.utils.crypto import salted_hmac

from evaluator.messages.jobs import Progress, Step, WorkerReport
from evaluator.messages.signed import SignedMessage, is_signed_with


def step_secret(evaluation: UUID, attempt: int, step: Step, *, key: str | bytes | None = None) -> str:
    """Return the secret that the job for this step carries; `key` is the site's secret key unless given."""
    return salted_hmac(
        "docvqa_site.evaluation.step", f"{evaluation}:{attempt}:{step}", secret=key, algorithm="sha256"
    ).hexdigest()


def sample_key(reference: str) -> str:
    """Return from what the places of weight samples follow, the same for all runs from the same base weights.

    Another secret key of the site means other places: earlier runs aren't compared with later ones.
    """
    return salted_hmac("docvqa_site.evaluation.weight_sample", reference, algorithm="sha256").hexdigest()


def is_authentic(signed: SignedMessage, content: Progress | WorkerReport) -> bool:
    """Return whether the holder of the very job that `content` is about has signed it."""
    keys = [settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS]
    about = (content.evaluation, content.attempt, content.step)
    return any(is_signed_with(step_secret(*about, key=key), signed) for key in keys)
