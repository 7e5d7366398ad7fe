from django.apps import AppConfig


class DocsConfig(AppConfig):
    name = "portal.docs"
