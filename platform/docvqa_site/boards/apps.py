from django.apps import AppConfig


class BoardsConfig(AppConfig):
    name = "docvqa_site.boards"
    label = "leaderboard"  # of its table and permissions, in databases that exist
    default_auto_field = "django.db.models.BigAutoField"
