"""What a draft's page says about how its proof is displayed."""

from typing import Any

from django import template

from docvqa_site.proofs.shown import display_of
from docvqa_site.uploads.models import Upload

register = template.Library()


@register.inclusion_tag("proofs/display.html")
def proof_display(upload: Upload, address: str, page: str) -> dict[str, Any]:
    """Show what reviewers can't see of a proof, with the link to the page at `address`, which shows what they see.

    While the pages of a PDF are being drawn, a browser asks the `page` that this is part of for the outcome.
    """
    return {"display": display_of(upload), "address": address, "page": page}
