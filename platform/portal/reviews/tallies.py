"""The rules of `portal.reviews.verdict` in SQL, for boards and queues that select by a verdict.

They read the counts that `portal.reviews.models.ProofReview` stores with each submission. `of` leads to the submission
from the rows of a query, such as "submission__" from runs; it is empty where these are submissions.
"""

from django.db.models import F, Q


def rejected(of: str = "") -> Q:
    """Return the condition that the proof is rejected, as `status_of` decides it."""
    return Q(**{f"{of}proof_rejected": True})


def verified(required: int | F, of: str = "") -> Q:
    """Return the condition that the result is verified, as `status_of` decides it."""
    objections = F(f"{of}rejections") + F(f"{of}change_requests")
    unopposed = {f"{of}rejections": 0, f"{of}change_requests": 0}
    outnumbers = Q(**{f"{of}acceptances__gt": objections}) | Q(**unopposed)
    return ~rejected(of) & outnumbers & Q(**{f"{of}acceptances__gte": required})
