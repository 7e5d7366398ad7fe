"""FedShampoo (PFL-DocVQA competition paper, section 4.4 and appendix D.1, algorithm 1): track 1 without its embedding.

Federated averaging whose clients train with Shampoo: every layer's gradient is preconditioned from both sides, and each
element of the step is clipped. A client's preconditioners describe its own data: they stay at the client, as its
`state`, from one round in which it takes part to the next, and only the models' changes are sent. The paper also
freezes the embedding, a quarter of what would be sent; the setting `frozen` does that.
"""

from collections.abc import Iterator

from starter_kit.methods import fedavg


class Settings(fedavg.Settings):
    """Settings of FedShampoo: those of federated averaging, with Shampoo's in `local.shampoo`."""

    def conflicts(self) -> Iterator[str]:
        yield from super().conflicts()
        if self.local.optimizer != "shampoo":
            yield (
                f"FedShampoo trains with local.optimizer shampoo, not {self.local.optimizer}; with any other it is "
                "fedavg"
            )
