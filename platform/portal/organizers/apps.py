from django.apps import AppConfig


class OrganizersConfig(AppConfig):
    name = "portal.organizers"
    label = "organizers"
    default_auto_field = "django.db.models.BigAutoField"
