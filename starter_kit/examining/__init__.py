"""Examinations of submitted runs by the organizers: one judge for each trust level, started by the site.

    python -m starter_kit.examining ANSWER PARENT < job.json

A judge reads an `ExaminationJob`, examines the run and writes a `JudgeAnswer`. It never loads the attached method
file: that runs in sandboxed processes (`confined`), whose answers are data of an untrusted process. `conformance`,
`replay` and `rerun` are the judges: each has a function `examine(job, confined, on_progress)` that returns its
findings.
"""
