"""The organizers' forms about evaluations."""

from datetime import datetime, timedelta

from django import forms
from django.contrib.admin.widgets import AdminSplitDateTime
from django.utils import timezone


def _a_day_ago() -> datetime:
    return timezone.now() - timedelta(days=1)


class FailedSinceForm(forms.Form):
    """Since when runs must have failed, in UTC."""

    since = forms.SplitDateTimeField(
        label="Failed since (UTC)", initial=_a_day_ago, widget=AdminSplitDateTime, required=True
    )
