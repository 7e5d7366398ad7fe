from django.apps import AppConfig


class ReviewsConfig(AppConfig):
    name = "portal.reviews"
    label = "reviews"
    default_auto_field = "django.db.models.BigAutoField"
