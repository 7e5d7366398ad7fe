from django.apps import AppConfig


class LeaderboardConfig(AppConfig):
    name = "portal.leaderboard"
    label = "leaderboard"
    default_auto_field = "django.db.models.BigAutoField"
