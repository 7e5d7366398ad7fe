from django.apps import AppConfig


class BoardsConfig(AppConfig):
    name = "docvqa_site.boards"
    label = "leaderboard"  # of its table and permissions, in databases that exist
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from docvqa_site.boards.ordering import rank_in_words
        from docvqa_site.submissions.signals import rank_asked

        rank_asked.connect(rank_in_words)
