"""The Gaussian mechanism on a sum of clipped updates, and who draws its noise.

Guarantees, for the clip norm S and the noise multiplier σ: each unit's update has L2 norm at most S in the sum, and

- `server`: the sum carries one draw of N(0, σ²S²) in each coordinate, added by the server, which must be trusted;
- `client_full`: every client's message carries such a draw of its own, so that each message is protected, too;
- `client_share`: every one of the K clients of a round adds a draw of N(0, σ²S²/K), so that the sum of all K messages
  carries σS. A single message is nearly bare: only for sums that nobody sees the parts of, by secure aggregation.

Noise is drawn for every round, also where nobody was sampled. What this amounts to is for the accountants to say: see
`evaluator.mechanisms.noise`.
"""

from dataclasses import dataclass, field

from torch import Tensor

from evaluator.mechanisms.noise import Noise, Placement
from starter_kit.dp.clipping import clip
from starter_kit.dp.keystream import Keystream
from starter_kit.dp.noise import gaussian_noise


@dataclass(frozen=True)
class GaussianSum:
    """The mechanism as it is executed.

    Attributes:
        clip_norm: S.
        noise: σ, and who draws the noise.
        keystream: One process's own; it is never copied to another.
    """

    clip_norm: float
    noise: Noise
    keystream: Keystream = field(default_factory=Keystream, repr=False, compare=False)

    def clip(self, update: Tensor) -> Tensor | None:
        """`update` (d,) scaled down to norm S; None where it is not finite."""
        return clip(update, self.clip_norm)

    def noised_by_client(self, message: Tensor, clients: int) -> Tensor:
        """A client's message (d,) as it leaves, in a round of `clients` clients."""
        return self._noised(message, self._client_std(clients))

    def noised_by_server(self, total: Tensor) -> Tensor:
        """The sum (d,) of the messages as the server releases it."""
        return self._noised(total, self._std if self.noise.placement is Placement.SERVER else 0.0)

    def std_in_sum(self, clients: int) -> float:
        """Standard deviation of the noise in each coordinate of a sum over `clients` clients."""
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
        return vector + gaussian_noise(len(vector), std, self.keystream) if std else vector
