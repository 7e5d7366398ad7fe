"""Examinations of scored runs, from which trust levels follow.

`levels` is the table of levels. `requests` has the states of an examination, from the organizers' request to its end;
`running` makes one on this machine, with a run's `files`, by a judge of the starter kit that `sandbox` starts. `trust`
derives the run's level from its examinations; nothing else sets one.

`leakage` isn't an examination: it is measured by the workers, after the score.
"""
