"""Tests of the accountants, against other accountants, closed forms and simulations."""
