"""Tests of the REST API's client and of credentials."""
