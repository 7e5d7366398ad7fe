"""Tests of what all pages share: components, accessibility, security headers."""
