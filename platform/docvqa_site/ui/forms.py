"""The rendering of every form of the site: label, help, control and errors, connected for screen readers."""

from typing import Any

from django.forms.renderers import DjangoTemplates
from typing_extensions import override

# Of controls that the site draws otherwise than Django.
CONTROLS = {"django/forms/widgets/url.html": "ui/url.html"}


class FormRenderer(DjangoTemplates):
    """Renders every form and field with the site's own templates."""

    form_template_name = "ui/form_fields.html"
    field_template_name = "ui/field.html"

    @override
    def get_template(self, template_name: str) -> Any:
        return super().get_template(CONTROLS.get(template_name, template_name))
