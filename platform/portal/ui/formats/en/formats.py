"""Dates such as 22 Nov 2026, 14:00 UTC."""

DATE_FORMAT = "j M Y"
TIME_FORMAT = "H:i"
DATETIME_FORMAT = "j M Y, H:i T"
