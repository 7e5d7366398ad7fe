"""What the decisions on a proof add up to, as conditions: queries select by them, and verdicts evaluate them in memory.

They read the counts that `reviews.models.ProofReview` stores with each submission. `of` leads to the submission
from the rows of a query, such as "submission__" from runs; it is empty where these are submissions.
"""

from django.db.models import F, Q


def rejected(of: str = "") -> Q:
    """Return the condition that the proof is rejected, as `docvqa_site.submissions.models.REJECTED` has it."""
    return Q(**{f"{of}proof_rejected": True})


def verified(required: int | F | None, of: str = "") -> Q:
    """Return the condition that the result is verified: `required` acceptances that outnumber all objections.

    None is, where `required` is None because no proof is needed.
    """
    if required is None:
        return Q(pk__in=[])
    objections = F(f"{of}rejections") + F(f"{of}change_requests")
    unopposed = {f"{of}rejections": 0, f"{of}change_requests": 0}
    outnumbers = Q(**{f"{of}acceptances__gt": objections}) | Q(**unopposed)
    return ~rejected(of) & outnumbers & Q(**{f"{of}acceptances__gte": required})
