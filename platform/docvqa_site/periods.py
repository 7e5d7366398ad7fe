"""How long what the site stores is kept: the table of the privacy notice, by which the clean-up goes too."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings

# To reconsider the end of an account.
ERASURE_DAYS = 14
# Notifications of one person.
MOST_NOTIFICATIONS = 200


@dataclass(frozen=True)
class Period:
    """What is kept, and how long.

    Attributes:
        until: What ends it, with its `{days}`.
        forever: What ends it if the site's setting is 0 days.
        setting: The name of the setting, if there is one; else it is `fixed_days`, or no time at all.
    """

    what: str
    until: str = "no limit"
    forever: str = "no limit"
    setting: str = ""
    fixed_days: int = 0

    @property
    def days(self) -> int:
        return int(getattr(settings, self.setting)) if self.setting else self.fixed_days

    @property
    def words(self) -> str:
        """Until when it is kept, as people read it."""
        text = self.forever if self.setting and not self.days else self.until
        hours = settings.SESSION_COOKIE_AGE // 3600
        return text.format(days=self.days, hours=hours, most=MOST_NOTIFICATIONS)


# By the names of the rules that the clock applies, as far as one does.
PERIODS: dict[str, Period] = {
    "sessions": Period(
        "Login sessions",
        "you log out or close the browser; {hours} hours if you chose to stay logged in",
    ),
    "mails": Period(
        "Emails to you",
        "{days} days after they were delivered or given up; the text of a delivered one is deleted at once",
        "no limit; the text of a delivered one is deleted at once",
        "RETENTION_MAIL_DAYS",
    ),
    "notifications": Period(
        "Notifications",
        "{days} days after they were written, or earlier once there are {most} newer ones",
        "there are {most} newer ones",
        "RETENTION_NOTIFICATION_DAYS",
    ),
    "uploads": Period(
        "Unfinished uploads and unused files",
        "{days} days after they were started",
        setting="RETENTION_UPLOAD_DAYS",
    ),
    "drafts": Period(
        "Files of a draft",
        "you discard the draft, or {days} days after the last file was added; its text stays",
        "you discard the draft; its text stays",
        "RETENTION_DRAFT_DAYS",
    ),
    "checkpoints": Period(
        "Checkpoints of scored and rejected runs",
        "{days} days after the track closed",
        setting="RETENTION_CHECKPOINT_DAYS",
    ),
    "accounts": Period("Your account", "{days} days after you choose to delete it", fixed_days=ERASURE_DAYS),
    "results": Period(
        "Teams, submissions, results, reviews and audit entries",
        "no limit; without your name once your account is deleted",
    ),
}


def cutoff(rule: str, now: datetime) -> datetime | None:
    """Return the time before which the rule removes what is older; None if it is off."""
    days = PERIODS[rule].days
    return now - timedelta(days=days) if days else None
