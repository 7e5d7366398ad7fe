"""Messages to the site that only the holder of a job's secret can write.

Every worker's account at the broker may write to the site's intake. A job therefore carries a secret that belongs to
one step of one attempt, and what is reported on the step is signed with it (HMAC-SHA256). Whoever can write to the
intake but never held the job can neither forge a message nor change one. Whoever reads the jobs' queue can.
"""

import hashlib
import hmac

from pydantic import Field

from evaluator.messages.base import Message
from evaluator.messages.jobs import Progress, WorkerReport


class SignedMessage(Message):
    """A message as the JSON text that was signed, and its signature in hexadecimal."""

    content: str
    signature: str = Field(pattern=r"^[0-9a-f]{64}$")


def sign(message: Progress | WorkerReport, secret: str) -> SignedMessage:
    """Return the message, signed with the secret of its job."""
    content = message.model_dump_json()
    return SignedMessage(content=content, signature=_signature(content, secret))


def is_signed_with(secret: str, message: SignedMessage) -> bool:
    """Return whether someone who has the secret signed exactly this content."""
    return hmac.compare_digest(_signature(message.content, secret), message.signature)


def _signature(content: str, secret: str) -> str:
    return hmac.new(secret.encode(), content.encode(), hashlib.sha256).hexdigest()
