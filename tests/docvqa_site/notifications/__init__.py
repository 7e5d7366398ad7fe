"""Tests of notifications: on the site, by mail, and turned off."""
