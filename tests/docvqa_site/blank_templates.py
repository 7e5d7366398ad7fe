"""A template engine that renders nothing, for tests in which only the status of an answer counts."""

from typing import Any

from django.template.backends.base import BaseEngine


class Blank:
    """A template of any name."""

    def render(self, context: Any = None, request: Any = None) -> str:
        return ""


class BlankTemplates(BaseEngine):
    """Finds a template for every name."""

    def __init__(self, params: dict[str, Any]) -> None:
        super().__init__({name: value for name, value in params.items() if name != "OPTIONS"})

    def get_template(self, template_name: str) -> Blank:
        return Blank()
