"""The private runs of a team that the site knows of, compared with how many a training record states.

A run counts once its record was uploaded, for which the site has drawn a challenge. The site doesn't know of others.
"""

from evaluator.errors import ProblemError
from evaluator.messages.api import IssuedRunToken
from starter_kit.site.client import SiteClient


def earlier_records(client: SiteClient, track: str, run_token: str | None = None, *also: str) -> int:
    """Return how many training records of the team in the track the site has from before a run.

    Args:
        run_token: The run's token; None for a run that is yet to be trained.
        also: The tokens of other runs that don't count, such as those that are submitted together with it.
    """
    tokens = [token for token in client.run_tokens() if token.track == track]
    issued = next((token.issued_at for token in tokens if token.token == run_token), None)

    def counts(token: IssuedRunToken) -> bool:
        is_earlier = issued is None or token.issued_at < issued
        return is_earlier and token.challenged_at is not None and token.token not in (run_token, *also)

    return sum(map(counts, tokens))


def earlier_records_if_known(client: SiteClient, track: str, run_token: str | None, *also: str) -> int | None:
    """Return the same; None where the site doesn't answer the question."""
    try:
        return earlier_records(client, track, run_token, *also)
    except ProblemError:
        return None


def unstated_runs(earlier: int | None, stated: int, track: str) -> str:
    """Return in a sentence that the site has more records than private runs are stated; empty if it hasn't."""
    if earlier is None or earlier <= stated:
        return ""
    records = "1 earlier training record" if earlier == 1 else f"{earlier} earlier training records"
    return f"The site has {records} of your team in {track}, but tuning.private_runs is {stated}."
