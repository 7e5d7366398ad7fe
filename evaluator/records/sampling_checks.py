"""C5 and C6: whether those who took part are as many as the declared sampling makes them."""

from collections import defaultdict
from collections.abc import Iterator, Sequence

from evaluator.contracts import Check
from evaluator.records.annex import Annex
from evaluator.records.counts import coin_probability, total_probability
from evaluator.records.difference import Difference, judge, not_applicable
from evaluator.records.lines import FixedSize, Full, TrainingRecord, TwoStagePoisson

FALSE_ALARM = 1e-4  # of an honest run, in each of the two checks
IMPOSSIBLE = 1e-12  # below it, totals are no accident


def clients(record: TrainingRecord) -> Check:
    """C5: the clients of each round; exact where their number is fixed."""
    return judge("C5", _client_differences(record), otherwise="as the sampling makes them")


def providers(record: TrainingRecord, annex: Annex) -> Check:
    """C6: the providers of each client, in the rounds in which it took part, without telling how many they were."""
    if not any(annex.sampled):
        return not_applicable("C6", "no client took part in any round")
    return judge("C6", _provider_differences(record, annex), otherwise="as the sampling makes them")


def _client_differences(record: TrainingRecord) -> Iterator[Difference]:
    run, rounds = record.run, record.rounds
    two_stage = isinstance(run.sampling, TwoStagePoisson)
    fixed = run.sampling.clients_per_round if isinstance(run.sampling, FixedSize) else run.clients
    for line in rounds:
        if line.clients != fixed and not (two_stage and line.clients <= run.clients):
            expected = f"at most {run.clients} clients" if two_stage else f"{fixed} clients"
            yield Difference(expected, line.clients, f"round {line.round}, clients")
    if two_stage:
        coins = [(line.clients, line.client_rate) for line in rounds]
        yield from _improbable(coins, run.clients, "numbers of clients", "")


def _provider_differences(record: TrainingRecord, annex: Annex) -> Iterator[Difference]:
    everyone = set(range(record.run.clients))
    if annex.providers_per_client.keys() != everyone:
        yield Difference(
            f"the clients 0 to {record.run.clients - 1}", "others", "annex, providers_per_client"
        )
    for line, sampled in zip(record.rounds, annex.sampled, strict=True):
        where = f"annex, round {line.round}"
        if len(sampled) != line.clients or not sampled.keys() <= everyone:
            yield Difference(f"the record's {line.clients} clients", "others", where)
        if any(count > annex.providers_per_client.get(client, 0) for client, count in sampled.items()):
            yield Difference("at most all of a client's providers", "more", where)
    if isinstance(record.run.sampling, FixedSize):
        yield from _varying_sizes(record, annex)
    for client, providers in annex.providers_per_client.items():
        coins = [
            (sampled[client], line.provider_rate)
            for line, sampled in zip(record.rounds, annex.sampled, strict=True)
            if client in sampled
        ]
        yield from _client_provider_differences(record, f"annex, client {client}", providers, coins)


def _client_provider_differences(
    record: TrainingRecord, where: str, providers: int, coins: Sequence[tuple[int, float]]
) -> Iterator[Difference]:
    """What is odd about one client's (count, rate) of each round in which it took part."""
    match record.run.sampling:
        case Full():
            if any(count != providers for count, _ in coins):
                yield Difference("all providers in every round", "fewer", where)
        case FixedSize():
            if any(count > rate * providers * (1 + 1e-9) for count, rate in coins):
                yield Difference("at most the declared share of its providers", "more", where)
        case _:
            yield from _improbable(coins, providers, "numbers of providers", where, tests=record.run.clients)


def _varying_sizes(record: TrainingRecord, annex: Annex) -> Iterator[Difference]:
    """A fixed size is one number for each rate, at all clients and in all rounds."""
    sizes: dict[float, set[int]] = defaultdict(set)
    for line, sampled in zip(record.rounds, annex.sampled, strict=True):
        sizes[line.provider_rate].update(sampled.values())
    if any(len(numbers) > 1 for numbers in sizes.values()):
        yield Difference("one number of providers at every client and in every round", "several", "annex")


def _improbable(
    coins: Sequence[tuple[int, float]], population: int, what: str, where: str, tests: int = 1
) -> Iterator[Difference]:
    """Whether counts are too odd for coins: flagged, and rejected where they can't be an accident."""
    if coin_probability(coins, population) * tests < FALSE_ALARM:
        expected = f"{what} that independent coins show with a probability of {FALSE_ALARM:g} or more"
        rejects = total_probability(coins, population) * tests < IMPOSSIBLE
        yield Difference(expected, "impossible ones" if rejects else "less probable ones", where, rejects)
