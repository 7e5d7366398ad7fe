"""Tests of teams, invitations and signing keys."""
