"""Dates such as Nov 22, 2026, 14:00 UTC."""

DATE_FORMAT = "M j, Y"
TIME_FORMAT = "H:i"
DATETIME_FORMAT = "M j, Y, H:i T"
