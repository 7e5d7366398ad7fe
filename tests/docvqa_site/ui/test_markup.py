from pathlib import Path

import pytest
from django.utils.html import format_html
from django.utils.safestring import SafeString

import docvqa_site
from docvqa_site.ui.markup import markup


@pytest.mark.parametrize("value", ["plain", "<b>&'\"", SafeString("<b>bold</b>"), 1.5, None])
def test_values_are_escaped_as_django_does_it(value):
    found = markup('<td title="{}">{}</td>', value, value)
    assert found == format_html('<td title="{}">{}</td>', value, value)
    assert isinstance(found, SafeString)


def test_no_template_has_a_comment_that_a_page_would_show() -> None:
    """Django shows a comment between `{#` and `#}` that doesn't end on its line."""
    site = Path(docvqa_site.__file__).parent
    shown = [
        f"{path.relative_to(site)}: {line.strip()}"
        for path in [*site.rglob("templates/**/*.html"), *site.rglob("templates/**/*.txt")]
        for line in path.read_text().splitlines()
        if line.count("{#") != line.count("#}")
    ]
    assert shown == []
