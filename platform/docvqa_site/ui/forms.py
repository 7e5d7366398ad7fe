"""The rendering of every form of the site: label, help, control and errors, connected for screen readers."""

from collections.abc import Callable, Mapping
from typing import Any

from django.forms.renderers import DjangoTemplates
from django.utils.html import conditional_escape
from django.utils.safestring import SafeString
from typing_extensions import override

from docvqa_site.ui.markup import markup

# Of controls that the site draws otherwise than Django.
CONTROLS = {"django/forms/widgets/url.html": "ui/url.html"}

WIDGETS = "django/forms/widgets/"
INPUTS = ("text", "number", "email", "password", "hidden", "date", "checkbox", "radio_option")


def attributes(widget: Mapping[str, Any]) -> SafeString:
    """Return the attributes of a control; one that is true has no value, and one that is false is left out."""
    shown = ((name, value) for name, value in widget["attrs"].items() if value is not False)
    found = (
        f" {name}" if value is True else f' {name}="{conditional_escape(value)}"' for name, value in shown
    )
    return SafeString("".join(found))


def input_element(widget: Mapping[str, Any]) -> SafeString:
    """Return a control of one element."""
    value = "" if widget["value"] is None else markup(' value="{}"', widget["value"])
    return markup(
        '<input type="{}" name="{}"{}{}>', widget["type"], widget["name"], value, attributes(widget)
    )


def text_area(widget: Mapping[str, Any]) -> SafeString:
    """Return a control for several lines, of which a browser leaves out the first."""
    value = "" if widget["value"] is None else widget["value"]
    return markup('<textarea name="{}"{}>\n{}</textarea>', widget["name"], attributes(widget), value)


# The reviewers' desk has fifty, each of which takes Django's templates fifty times as long.
ELEMENTS: dict[str, Callable[[Mapping[str, Any]], SafeString]] = {
    **{f"{WIDGETS}{name}.html": input_element for name in INPUTS},
    f"{WIDGETS}textarea.html": text_area,
}


class FormRenderer(DjangoTemplates):
    """Renders every form and field with the site's own templates."""

    form_template_name = "ui/form_fields.html"
    field_template_name = "ui/field.html"

    @override
    def get_template(self, template_name: str) -> Any:
        return super().get_template(CONTROLS.get(template_name, template_name))

    @override
    def render(self, template_name: str, context: Any, request: Any = None) -> str:
        element, widget = ELEMENTS.get(template_name), context.get("widget")
        if element is None or widget.get("wrap_label"):
            return super().render(template_name, context, request)
        return element(widget)
