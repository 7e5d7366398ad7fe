"""The rendering of every form of the site: label, help, control and errors, connected for screen readers."""

from django.forms.renderers import DjangoTemplates


class FormRenderer(DjangoTemplates):
    """Renders every form and field with the site's own templates."""

    form_template_name = "ui/form_fields.html"
    field_template_name = "ui/field.html"
