"""Checks that the numbers of clients and providers that took part follow the declared sampling.

No number of providers is reported.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence

from evaluator.errors import ErrorCode
from evaluator.mechanisms.sampling import Binomial, Exactly, OncePerCycle
from evaluator.messages.checks import Difference, NamedCheck
from evaluator.messages.jobs import Check
from evaluator.records.annex import Annex
from evaluator.records.case import Case, RunFile, record_check
from evaluator.records.counts import allocation_probability, coin_probability, total_probability
from evaluator.records.lines import RoundLine, TrainingRecord

# The probability that an honest run is flagged by either of the two checks.
FALSE_ALARM = 1e-4
# The probability below which totals are no accident.
IMPOSSIBLE = 1e-12


@record_check(
    NamedCheck(
        "record.clients",
        name="clients per round",
        meaning="The number of clients in each round matches the declared sampling: exactly for fixed-size "
        "sampling, and with a plausible distribution for independent sampling. A run is flagged if its counts "
        "have a probability below 10⁻⁴ and rejected if the probability of its totals is below 10⁻¹².",
        limit="Clients that were chosen in some other way but in plausible numbers. The check has little "
        "power in short "
        "runs: sampling exactly 2 of 10 clients in every round passes as independent sampling at rate 0.2 until about "
        "round 20.",
        code=ErrorCode.RECORD_ROUNDS,
    )
)
def clients(this: NamedCheck, case: Case) -> Check:
    return this.judge(
        _client_differences(case.record), otherwise="plausible numbers for the declared sampling"
    )


@record_check(
    NamedCheck(
        "record.providers",
        name="sampled providers",
        meaning="For each participating client, the number of sampled providers matches the declared sampling (same "
        "test as `record.clients`). It never exceeds the number of providers that the client has or that the track "
        "states. With fixed-size sampling, each client has at least the declared minimum number of providers "
        "(`fewest_providers`). With random allocation, a client's numbers in each cycle add up to its providers.",
        limit="Which providers were sampled (they could be the same ones in every round); invented numbers that look "
        "random; and a fixed sample size chosen based on the number of providers.",
        code=ErrorCode.RECORD_ANNEX,
    ),
    RunFile.ANNEX,
)
def providers(this: NamedCheck, case: Case) -> Check:
    record, annex = case.record, case.annex
    if not any(annex.sampled):
        return this.not_applicable("no client took part in any round")
    known = _known_differences(annex, case.rules.providers_per_client)
    return this.judge(
        [*known, *_provider_differences(record, annex)],
        otherwise="plausible numbers for the declared sampling",
    )


def _client_differences(record: TrainingRecord) -> Iterator[Difference]:
    clients = record.run.clients
    laws = [(line, line.sampling.clients(clients)) for line in record.rounds]
    for line, law in laws:
        where = f"round {line.round}, clients"
        if isinstance(law, Exactly) and line.clients != law.count:
            yield Difference(f"{law.count} clients", line.clients, where)
        elif line.clients > law.most:
            yield Difference(f"at most {law.most} clients", line.clients, where)
    coins = [(line.clients, law.rate) for line, law in laws if isinstance(law, Binomial)]
    yield from _improbable(coins, clients, "numbers of clients", "")


def _known_differences(annex: Annex, known: Sequence[int]) -> Iterator[Difference]:
    """Yield where the annex has other numbers of providers than the organizers, who gave out the data.

    Who claims more providers can claim a smaller sampling rate for the same sample, and a smaller ε.
    """
    for client, providers in enumerate(known):
        claimed, where = annex.providers_per_client.get(client, 0), f"annex, client {client}"
        if claimed > providers:
            yield Difference("the track's number of providers of the client", "more", where)
        elif claimed < providers:
            yield Difference("the track's number of providers of the client", "fewer", where, rejects=False)


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
    for client, providers in annex.providers_per_client.items():
        if not all(line.sampling.covers(providers) for line in record.rounds):
            expected = "at least as many providers as the sampling assumes"
            yield Difference(expected, "fewer", f"annex, client {client}")
        counts = [
            (sampled[client], line)
            for line, sampled in zip(record.rounds, annex.sampled, strict=True)
            if client in sampled
        ]
        yield from _client_provider_differences(
            f"annex, client {client}", providers, counts, tests=record.run.clients
        )


def _client_provider_differences(
    where: str, providers: int, counts: Sequence[tuple[int, RoundLine]], *, tests: int
) -> Iterator[Difference]:
    """Yield what is odd about one client's number of sampled providers in each round in which it took part."""
    laws = [(count, line.sampling.providers(providers)) for count, line in counts]
    if any(isinstance(law, Exactly) and count != law.count for count, law in laws):
        yield Difference("the fixed sample size, in every round", "another", where)
    coins = [(count, law.rate) for count, law in laws if isinstance(law, Binomial)]
    yield from _improbable(coins, providers, "numbers of providers", where, tests=tests)
    cycles: dict[OncePerCycle, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
    for (count, line), (_, law) in zip(counts, laws, strict=True):
        if isinstance(law, OncePerCycle):
            cycle, _ = law.place(line.round)
            cycles[law][cycle].append(count)
    for law, found in cycles.items():
        yield from _misallocated(law, list(found.values()), where, tests=tests * len(cycles))


def _misallocated(
    law: OncePerCycle, cycles: Sequence[Sequence[int]], where: str, *, tests: int
) -> Iterator[Difference]:
    """Yield where members didn't each draw one round of a cycle, by the counts of the rounds of each cycle."""
    for counts in cycles:
        whole = len(counts) == law.rounds
        if sum(counts) > law.population or (whole and sum(counts) < law.population):
            yield Difference("each provider in one round of every cycle", "others", where)
            return
    if law.population and allocation_probability(cycles, law.population, law.rounds) * tests < FALSE_ALARM:
        expected = (
            f"numbers of providers that random allocation shows with a probability of {FALSE_ALARM:g} or more"
        )
        yield Difference(expected, "less probable ones", where, rejects=False)


def _improbable(
    coins: Sequence[tuple[int, float]], population: int, what: str, where: str, tests: int = 1
) -> Iterator[Difference]:
    """Yield a difference where counts are too odd for coins: flagged, and rejected where they can't be an accident."""
    if not coins:
        return
    if coin_probability(coins, population) * tests < FALSE_ALARM:
        expected = f"{what} that independent coins show with a probability of {FALSE_ALARM:g} or more"
        rejects = total_probability(coins, population) * tests < IMPOSSIBLE
        yield Difference(expected, "impossible ones" if rejects else "less probable ones", where, rejects)
