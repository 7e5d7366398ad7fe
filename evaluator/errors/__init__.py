"""Coded errors: the table of codes, and the values and exceptions that carry one."""

from evaluator.errors.codes import ErrorCode as ErrorCode
from evaluator.errors.problems import Problem as Problem
from evaluator.errors.problems import ProblemError as ProblemError
from evaluator.errors.problems import shorten as shorten
