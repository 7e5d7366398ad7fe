import re
from html import unescape

import pytest
from django.template import Context, Template

from docvqa_site.ui.commands import command_html


def units(html: str) -> list[str]:
    return [unescape(one) for one in re.findall(r'<span class="unit">(.*?)</span>', html)]


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("pfl train a-b --data data/public --wait", ["pfl", "train", "a-b", "--data data/public", "--wait"]),
        ('pfl submit --title "My method" --proof x', ["pfl", "submit", '--title "My method"', "--proof x"]),
        ("export A=${A:-…} && b -q && c", ["export", "A=${A:-…}", "&&", "b", "-q", "&&", "c"]),
        ('pip install -c URL "p[kit] @ https://a-b"', ["pip", "install", "-c URL", '"p[kit] @ https://a-b"']),
        ("a --b=c --d \\\n  --e", ["a", "--b=c", "--d", "\\", "--e"]),
        ("a -b # c-d e", ["a", "-b"]),
        ('curl -H "A: $B" c <d>', ["curl", '-H "A: $B"', "c", "<d>"]),
    ],
)
def test_an_option_stays_with_its_value_in_one_piece(command: str, expected: list[str]) -> None:
    html = command_html(command)
    assert units(html) == expected
    assert unescape(re.sub(r"</?span[^>]*>", "", html)) == command


def test_a_block_of_a_template_is_escaped_once() -> None:
    template = Template("{% load ui %}{% filter command %}pfl {{ it }}{% endfilter %} {{ it|command }}")
    html = template.render(Context({"it": '"<&>"'}))
    assert units(html) == ["pfl", '"<&>"', '"<&>"']
    assert "&amp;lt;" not in html
