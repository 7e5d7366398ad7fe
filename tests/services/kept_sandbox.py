"""A sandbox for the whole run of the tests, as a worker has one for all of its steps: to start one takes seconds."""

import atexit

from evaluator.sandbox.sandbox import Sandbox

SANDBOX = Sandbox()
atexit.register(SANDBOX.close)
