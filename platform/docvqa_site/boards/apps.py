from django.apps import AppConfig


class BoardsConfig(AppConfig):
    name = "docvqa_site.boards"
    label = "leaderboard"  # of its table and permissions, in databases that exist
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from docvqa_site.boards.standings import rank_at_the_time
        from docvqa_site.submissions.signals import rank_asked

        rank_asked.connect(rank_at_the_time)
