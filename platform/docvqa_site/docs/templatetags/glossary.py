"""Terms on pages that lead to the glossary."""

from django import template

from docvqa_site.docs.glossary import linked, linked_if_explained

register = template.Library()
register.simple_tag(linked, name="term")
register.filter("explained", linked_if_explained)
