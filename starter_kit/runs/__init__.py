"""Training runs: from settings, data and base weights to a run folder, whatever happens on the way.

`training` puts a run together and has its loop. `setup` is what server and clients build from the settings. `opening`
locks a run's folder and recovers what an interrupted process left there, `writing` appends to it, `resuming` has the
state that a run resumes from, and `private_record` the record of a private run, whose first line is in `record_line`.
`results` are the numbers of a run, `progress` shows them as it goes, and `folder` is the finished run.
"""
