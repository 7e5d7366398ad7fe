"""Dates of the administration such as Nov 22, 2026, 14:00:07 UTC; pages for everyone choose their own formats."""

DATE_FORMAT = "M j, Y"
TIME_FORMAT = "H:i"
DATETIME_FORMAT = "M j, Y, H:i:s T"
