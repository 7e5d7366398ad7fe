"""The workers: they take jobs from the broker, run one step each and send one report.

Start one with ``celery -A evaluator.worker worker -P solo -Q evaluator,evaluator.scoring``; a GPU machine may
listen on `evaluator.scoring` alone. A worker has a broker and a folder of its own, `PFL_EVALUATOR_HOME`, with the base
weights and the secret test sets. It has no database and no secret of the site.

What leaves a worker is a report: means over the test set, coded problems, and for the operators where an error
arose. Nothing that could quote the test set or open an artifact is sent or logged.
"""
