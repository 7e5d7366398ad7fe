"""The Gaussian mechanism on a sum of clipped updates, and who draws its noise.

Guarantees, for the clip norm S and the noise multiplier σ: the update of each privacy unit has L2 norm at most S in the
sum, and

- updates and noise are added up in whole multiples of a public step (`grid`): no low bit shows what was added;
- `server`: the sum carries one draw of N(0, σ²S²) in each coordinate, added by the server, which must be trusted;
- `client_full`: every client's message carries its own draw of that kind, so that each message is protected, too;
- `client_share`: every one of the K clients of a round adds a draw of N(0, σ²S²/K), so that the sum of all K messages
  carries σS. A single message is hardly protected: use it only under secure aggregation, where nobody sees the parts.

Noise is drawn for every round, including rounds in which nobody was sampled. The accountants compute what it amounts
to: see `evaluator.mechanisms.noise`.
"""

from dataclasses import dataclass, field

from torch import Tensor

from evaluator.mechanisms.noise import Noise, Placement
from starter_kit.dp.clipping import clip
from starter_kit.dp.grid import add_on_grid, grid_step
from starter_kit.dp.keystream import Keystream
from starter_kit.dp.noise import with_gaussian_noise


@dataclass(frozen=True)
class GaussianSum:
    """The mechanism that a run executes.

    Attributes:
        clip_norm: S.
        noise: σ, and who draws the noise.
        keystream: The keystream of one process; it is never copied to another.
    """

    clip_norm: float
    noise: Noise
    keystream: Keystream = field(default_factory=Keystream, repr=False, compare=False)

    def clip(self, update: Tensor) -> Tensor | None:
        """Return `update` (d,) scaled down to norm S; None where it is not finite.

        Raises:
            ValueError: `update` is not a float32 vector.
        """
        return clip(update, self.clip_norm)

    def add(self, total: Tensor, clipped: Tensor, clients: int) -> None:
        """Add a clipped update (d,), rounded towards zero to the grid, to a client's sum `total` (d,) in place.

        Args:
            clients: How many clients' sums are added up in the round.
        """
        add_on_grid(total, clipped, grid_step(self.clip_norm, len(total)), clients)

    def noised_by_client(self, message: Tensor, clients: int) -> Tensor:
        """Return a client's `message` (d,) with the client's noise (d,), if it draws any, in a round of `clients`."""
        return self._noised(message, self._client_std(clients))

    def noised_by_server(self, total: Tensor) -> Tensor:
        """Return the sum `total` (d,) of the messages with the server's noise (d,), if it draws any."""
        return self._noised(total, self._std if self.noise.placement is Placement.SERVER else 0.0)

    def std_in_sum(self, clients: int) -> float:
        """Return the standard deviation of the noise in each coordinate of a sum over `clients` clients."""
        if self.noise.placement is Placement.SERVER:
            return self._std
        return self._client_std(clients) * float(clients**0.5)

    @property
    def _std(self) -> float:
        return self.noise.multiplier * self.clip_norm

    def _client_std(self, clients: int) -> float:
        match self.noise.placement:
            case Placement.SERVER:
                return 0.0
            case Placement.CLIENT_FULL:
                return self._std
            case Placement.CLIENT_SHARE:
                return self._std / float(clients**0.5)

    def _noised(self, vector: Tensor, std: float) -> Tensor:
        if not std:
            return vector
        return with_gaussian_noise(vector, std, grid_step(self.clip_norm, len(vector)), self.keystream)
