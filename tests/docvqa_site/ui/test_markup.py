import pytest
from django.utils.html import format_html
from django.utils.safestring import SafeString

from docvqa_site.ui.markup import markup


@pytest.mark.parametrize("value", ["plain", "<b>&'\"", SafeString("<b>bold</b>"), 1.5, None])
def test_values_are_escaped_as_django_does_it(value):
    found = markup('<td title="{}">{}</td>', value, value)
    assert found == format_html('<td title="{}">{}</td>', value, value)
    assert isinstance(found, SafeString)
