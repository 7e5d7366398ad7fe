"""What the browser says of the errors that it finds itself: the texts of the table of codes."""

from django import template
from django.urls import reverse
from django.utils.html import json_script
from django.utils.safestring import SafeString

from evaluator.errors.codes import EXPLANATIONS, ErrorCode

register = template.Library()

# What the scripts in `static/submissions` name.
FOUND_BY_BROWSER = (
    ErrorCode.ARTIFACT_KIND,
    ErrorCode.ARTIFACT_MISSING,
    ErrorCode.CHECKPOINT_FORMAT,
    ErrorCode.CHECKPOINT_HEADER,
    ErrorCode.CHECKPOINT_INDEX,
    ErrorCode.CHECKPOINT_OFFSETS,
    ErrorCode.CHECKPOINT_SHARD,
    ErrorCode.RECORD_FORMAT,
    ErrorCode.RECORD_KEY,
    ErrorCode.RECORD_RULES,
    ErrorCode.SITE_UNREACHABLE,
    ErrorCode.UPLOAD_PART,
    ErrorCode.UPLOAD_STATE,
    ErrorCode.UPLOAD_URL,
)


@register.simple_tag
def error_texts() -> SafeString:
    """Return an element with the texts that `problem.js` reads, and the address of the documents that they name."""
    texts = {
        code: {"message": EXPLANATIONS[code].meaning, "next_step": EXPLANATIONS[code].next_step}
        for code in FOUND_BY_BROWSER
    }
    return json_script({"texts": texts, "docs": reverse("docs:contents")}, "error-texts")
