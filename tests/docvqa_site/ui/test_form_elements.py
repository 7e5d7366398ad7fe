"""The elements of forms that the site puts together itself are those of Django's templates."""

import pytest
from django import forms
from django.forms.renderers import DjangoTemplates

from docvqa_site.ui.forms import ELEMENTS, FormRenderer

NASTY = """"><b>&' é"""
WIDGETS = [
    forms.TextInput(attrs={"title": NASTY, "maxlength": 7, "autofocus": True, "required": False}),
    forms.NumberInput(attrs={"step": "any"}),
    forms.EmailInput(),
    forms.PasswordInput(render_value=True),
    forms.HiddenInput(),
    forms.DateInput(attrs={"type": "date"}),
    forms.CheckboxInput(),
    forms.Textarea(attrs={"rows": 1}),
]


@pytest.mark.parametrize("widget", WIDGETS, ids=lambda widget: type(widget).__name__)
@pytest.mark.parametrize("value", [None, "", NASTY, True])
def test_controls_are_as_django_draws_them(widget, value):
    assert widget.template_name in ELEMENTS
    drawn = [widget.render("a&b", value, renderer=renderer()) for renderer in (FormRenderer, DjangoTemplates)]
    assert drawn[0] == drawn[1]


def test_radio_buttons_are_as_django_draws_them():
    def drawn(renderer):
        class Form(forms.Form):
            default_renderer = renderer
            answer = forms.ChoiceField(choices=[("yes", "Yes"), (NASTY, "No")], widget=forms.RadioSelect)

        form = Form(initial={"answer": "yes"})
        return str(form["answer"]), [radio.tag() for radio in form["answer"]]

    assert drawn(FormRenderer) == drawn(DjangoTemplates)
