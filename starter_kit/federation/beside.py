"""What a method sends beside its updates: only methods that write no training record do."""

from dataclasses import dataclass

# Where the server keeps, in its state, what goes down beside the model.
BESIDE = "beside"


@dataclass(frozen=True)
class Beside:
    """What travels behind the model and behind each update, such as a control variate or the sum of a statistic.

    Down goes what the method keeps in the server's state under `BESIDE`, and zeros before there is any. No training
    record has a place for it.

    Attributes:
        vectors: How many vectors as long as the model.
        numbers: How many single numbers, after the vectors.
    """

    vectors: int = 0
    numbers: int = 0

    def size(self, model: int) -> int:
        """Return how many numbers go beside a model of this size."""
        return self.vectors * model + self.numbers

    def model_size(self, whole: int) -> int:
        """Return the size of the model in a message of so many numbers."""
        return (whole - self.numbers) // (1 + self.vectors)


NOTHING = Beside()
