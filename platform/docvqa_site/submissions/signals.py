"""Signals for the apps above. Receivers run inside the sender's transaction and enqueue work on commit only."""

from django.dispatch import Signal

# Sent by `submissions.services.submit` with `runs`, the runs of one submission that have just become queued, and
# received by `docvqa_site.evaluation.queue.dispatch.start_all`.
runs_queued = Signal()

# Sent by `submissions.states.move_run` when a run leaves the queue and by `submissions.tokens.claim_token` when one is
# accounted, with the keys `team` and `track`; received by
# `docvqa_site.evaluation.intake.challenge_checks.check_again_on_commit`.
challenges_changed = Signal()

# Sent by `submissions.arrival.check_arrival` with `upload`, the file of a proof, outside of any transaction. It is
# received by `docvqa_site.proofs.shown.prepare`, which raises `ProblemError` for a proof that can't be shown.
proof_arrived = Signal()

# Sent by `submissions.proof_versions` with `upload`, the file of a proof that isn't sent yet; received by
# `docvqa_site.proofs.shown.display_problems`, which returns why reviewers couldn't see its pages.
display_asked = Signal()

# Sent by `evaluation.notifications` with a scored `run`; received by `docvqa_site.boards.standings.rank_at_the_time`,
# which returns the run's rank in words, or an empty text where it has none.
rank_asked = Signal()

# Sent by `submissions.proof_versions.send_revision` with `artifact`, the newest version of a submitted proof, and the
# `actor`; received by `docvqa_site.reviews.services.reopen`.
proof_revised = Signal()
