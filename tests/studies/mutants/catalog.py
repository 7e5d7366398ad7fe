"""The mutants by name, with what is wrong in each and where that fault is from."""

from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from starter_kit.conformance.results import Group
from starter_kit.dp.gaussian_sum import GaussianSum
from starter_kit.methods.fl_provider_dp import ProviderDP
from tests.studies.mutants import clipping, isolation, noise, sampling

SETTINGS = Path(__file__).with_name("mutant.yaml")
CLIENT_NOISE = ("placement=client_full",)
ALLOCATION = ("sampling={type: random_allocation, rounds_per_cycle: 4}",)
SECURE = ("placement=client_share", "secure_aggregation={}")


@dataclass(frozen=True)
class Mutant:
    """A method with one fault.

    Attributes:
        fault: What is wrong, as a clause.
        build: Returns the faulty method.
        changes: Settings that the fault needs.
        group: The group of tests that finds it; None where only a second process shows it.
        limit: Why no examination finds it; empty where one must.
    """

    name: str
    fault: str
    build: Callable[[ProviderDP], ProviderDP]
    group: Group | None
    changes: tuple[str, ...] = ()
    limit: str = ""


def _with_noise(kind: type[GaussianSum], **more: Any) -> Callable[[ProviderDP], ProviderDP]:
    def build(method: ProviderDP) -> ProviderDP:
        noise = kind(method.noise.clip_norm, method.noise.noise, method.noise.keystream, **more)
        return ProviderDP(**(_values(method) | {"noise": noise}))

    return build


def _as(kind: type[ProviderDP], **more: Any) -> Callable[[ProviderDP], ProviderDP]:
    return lambda method: kind(**_values(method), **more)


def _values(method: ProviderDP) -> dict[str, Any]:
    return {field.name: getattr(method, field.name) for field in fields(ProviderDP)}


CATALOG = (
    Mutant("no-clipping", "updates aren't clipped", _with_noise(clipping.Unclipped), Group.CONTRIBUTIONS),
    Mutant(
        "clip-per-tensor",
        "each tensor is clipped to the whole bound",
        _with_noise(clipping.ClippedByPiece),
        Group.CONTRIBUTIONS,
    ),
    Mutant(
        "clip-per-half",
        "each half of the vector is clipped to the whole bound",
        _with_noise(clipping.ClippedByPiece, pieces=2),
        Group.CONTRIBUTIONS,
    ),
    Mutant(
        "clip-per-coordinate",
        "each coordinate is clipped to the bound, as by clip_grad_value_",
        _with_noise(clipping.ClippedByCoordinate),
        Group.CONTRIBUTIONS,
    ),
    Mutant(
        "clip-part",
        "the norm leaves some tensors out, which are released all the same",
        _with_noise(clipping.ClippedWithoutTied),
        Group.CONTRIBUTIONS,
    ),
    Mutant(
        "tied-twice",
        "a tied tensor is clipped once and released under both names",
        _with_noise(clipping.ReleasedTwice),
        Group.CONTRIBUTIONS,
    ),
    Mutant(
        "clip-root",
        "updates are scaled by √(S/norm)",
        _with_noise(clipping.ClippedByRoot),
        Group.CONTRIBUTIONS,
    ),
    Mutant(
        "ignored-tokens",
        "the norm is of the loss over all tokens, the gradient of that without ignored ones",
        _with_noise(clipping.ClippedByAnotherLoss),
        Group.CONTRIBUTIONS,
    ),
    Mutant(
        "nan-passes",
        "an update of NaN is scaled, not discarded",
        _with_noise(clipping.ClippedWithNaN),
        Group.NOT_FINITE,
    ),
    Mutant(
        "norm-overflows",
        "a norm that overflows in float32 isn't clipped",
        _with_noise(clipping.ClippedInSinglePrecision),
        Group.NOT_FINITE,
    ),
    Mutant(
        "counted-twice",
        "a provider's clipped update is added twice",
        _as(clipping.CountedTwice),
        Group.CONTRIBUTIONS,
    ),
    Mutant(
        "clip-per-example",
        "examples are clipped, not the provider that has them",
        _as(clipping.ClippedByExample),
        Group.CONTRIBUTIONS,
    ),
    Mutant(
        "clip-of-the-sum",
        "the sum of a client's updates is clipped, not each",
        _as(clipping.ClippedSum),
        Group.SAMPLING,
    ),
    Mutant(
        "adaptive-clipping",
        "the clip norm grows, and ε and noise are those of the first one",
        _as(clipping.AdaptiveWithoutCost),
        Group.CONTRIBUTIONS,
    ),
    Mutant("no-noise", "there is hardly any noise", _with_noise(noise.Scaled, factor=1e-6), Group.NOISE),
    Mutant(
        "half-noise",
        "the noise is half of the claimed one",
        _with_noise(noise.Scaled, factor=0.5),
        Group.NOISE,
    ),
    Mutant(
        "noise-0.97",
        "the noise is 97 % of the claimed one",
        _with_noise(noise.Scaled, factor=0.97),
        Group.NOISE,
    ),
    Mutant(
        "noise-twice", "the noise is switched on twice", _with_noise(noise.Scaled, factor=2**0.5), Group.NOISE
    ),
    Mutant(
        "noise-divided",
        "the noise is divided by √10, for ten clients of which the server adds one",
        _with_noise(noise.Scaled, factor=10**-0.5),
        Group.NOISE,
    ),
    Mutant(
        "noise-without-clip-norm",
        "the deviation is σ, not σS",
        _with_noise(noise.WithoutClipNorm),
        Group.NOISE,
    ),
    Mutant(
        "variance-for-deviation",
        "the deviation is σ²S²",
        _with_noise(noise.VarianceForDeviation),
        Group.NOISE,
    ),
    Mutant(
        "deviation-for-variance",
        "the deviation is √(σS)",
        _with_noise(noise.DeviationForVariance),
        Group.NOISE,
    ),
    Mutant("rand-like", "noise by rand_like: uniform and positive", _with_noise(noise.RandLike), Group.NOISE),
    Mutant("uniform-noise", "uniform noise of the right variance", _with_noise(noise.Uniform), Group.NOISE),
    Mutant(
        "laplace-noise", "Laplace noise of the right variance", _with_noise(noise.LaplaceShape), Group.NOISE
    ),
    Mutant("two-point-noise", "noise of ±σS", _with_noise(noise.TwoPoints), Group.NOISE),
    Mutant("bare-coordinates", "one coordinate in 100 has no noise", _with_noise(noise.Bare), Group.NOISE),
    Mutant(
        "half-bare", "half of the coordinates have no noise", _with_noise(noise.Bare, share=0.5), Group.NOISE
    ),
    Mutant("low-precision", "noise is drawn in bfloat16", _with_noise(noise.LowPrecision), Group.NOISE),
    Mutant("shared-pairs", "neighboring coordinates share a draw", _with_noise(noise.Pairs), Group.NOISE),
    Mutant(
        "antithetic",
        "one half of the noise is the negative of the other",
        _with_noise(noise.Pairs, sign=-1.0, apart=True),
        Group.NOISE,
    ),
    Mutant(
        "known-seed",
        "noise is drawn with the seed of the settings",
        _with_noise(noise.KnownSeed),
        Group.CONTRIBUTIONS,
    ),
    Mutant("same-seed", "every round has the same noise", _with_noise(noise.SameSeed), Group.NOISE),
    Mutant(
        "same-seed-of-clients",
        "all clients draw the same noise",
        _with_noise(noise.SameSeed),
        Group.NOISE,
        CLIENT_NOISE,
    ),
    Mutant(
        "global-generator",
        "noise is drawn from the global generator, which the program seeds once",
        _with_noise(noise.GlobalGenerator),
        None,
    ),
    Mutant(
        "telescoping", "each draw takes the one before it back", _with_noise(noise.Telescoping), Group.NOISE
    ),
    Mutant(
        "noise-with-memory",
        "half of the noise's variance is that of the round before",
        _with_noise(noise.WithMemory),
        Group.NOISE,
    ),
    Mutant(
        "noise-on-signal",
        "only coordinates with a signal get noise",
        _with_noise(noise.OnSignalOnly),
        Group.NOISE,
    ),
    Mutant(
        "noise-by-contribution",
        "the noise follows the size of the round's sum",
        _with_noise(noise.ByContribution),
        Group.NOISE,
    ),
    Mutant(
        "noise-not-in-the-model",
        "the model is moved by the sum without noise",
        _as(noise.NotInTheModel),
        Group.CONTRIBUTIONS,
    ),
    Mutant(
        "shares-too-small",
        "clients draw 1/K of the noise, not 1/√K",
        _with_noise(noise.Scaled, factor=0.5),
        Group.NOISE,
        SECURE,
    ),
    Mutant(
        "fixed-size",
        "a fixed number is drawn, and declared as coins",
        _as(sampling.FixedSize),
        Group.SAMPLING,
    ),
    Mutant(
        "shuffled", "epochs of a shuffled list, declared as coins", _as(sampling.Shuffled), Group.SAMPLING
    ),
    Mutant("one-coin", "one coin for all providers of a client", _as(sampling.OneCoin), Group.SAMPLING),
    Mutant("pairs-of-providers", "one coin for two providers", _as(sampling.SharedDraw), Group.SAMPLING),
    Mutant("at-least-one", "an empty sample gets a provider", _as(sampling.AtLeastOne), Group.EMPTY),
    Mutant("higher-rate", "the rate is 20 % above the claimed one", _as(sampling.HigherRate), Group.SAMPLING),
    Mutant(
        "favored-provider",
        "one provider of each client always takes part",
        _as(sampling.FavoredProvider),
        Group.SAMPLING,
    ),
    Mutant(
        "same-sample", "the first round's sample in every round", _as(sampling.SameSample), Group.SAMPLING
    ),
    Mutant(
        "seeded-sample",
        "coins follow from the seed of the settings",
        _as(sampling.SeededSample),
        Group.SAMPLING,
    ),
    *(
        Mutant(name, fault, _as(kind), Group.SAMPLING, ALLOCATION)
        for name, fault, kind in (
            (
                "coins-for-allocation",
                "coins are tossed, and declared as allocation",
                sampling.CoinsForAllocation,
            ),
            ("allocated-once", "every cycle has the draws of the first", sampling.AllocatedOnce),
            ("allocated-together", "all providers of a client have one draw", sampling.AllocatedTogether),
            ("allocated-in-parts", "a shuffled list is cut into equal parts", sampling.AllocatedInParts),
            ("seeded-allocation", "draws follow from the seed of the settings", sampling.SeededAllocation),
        )
    ),
    Mutant("skipped-when-empty", "an empty round gets no noise", _as(sampling.SkippedWhenEmpty), Group.EMPTY),
    Mutant(
        "realized-count",
        "the sum is divided by the number of participants",
        _as(sampling.RealizedCount),
        Group.CONTRIBUTIONS,
    ),
    Mutant(
        "shared-momentum",
        "the optimizer continues from one provider to the next",
        _as(isolation.SharedMomentum),
        Group.CONTRIBUTIONS,
    ),
    Mutant(
        "continued-weights",
        "providers train from each other's weights",
        _as(isolation.Continued),
        Group.CONTRIBUTIONS,
    ),
    Mutant(
        "carried-momentum",
        "the optimizer continues from round to round",
        _as(isolation.CarriedMomentum),
        Group.CARRIED,
    ),
    Mutant(
        "noiseless-dual",
        "a control variate from updates without noise",
        _as(isolation.NoiselessDual),
        Group.CARRIED,
    ),
    Mutant(
        "weighted-by-count",
        "messages are divided by the number of participants",
        _as(isolation.WeightedByCount),
        Group.SAMPLING,
    ),
    Mutant(
        "reported-loss", "the training loss is reported", _as(isolation.ReportedLoss), Group.CONTRIBUTIONS
    ),
    Mutant("printed-names", "participants are printed", _as(isolation.PrintedNames), Group.CONTRIBUTIONS),
    Mutant(
        "clip-above-twice",
        "updates up to twice the clip norm aren't clipped",
        _with_noise(clipping.ClippedAbove),
        Group.LENGTHS,
    ),
    Mutant(
        "clip-1.01",
        "the clip norm is 1 % too large",
        _with_noise(clipping.ClippedToMore, factor=1.01),
        Group.LENGTHS,
        limit="contributions are averaged over some 5,000 draws of noise; 2 % too much is found",
    ),
    Mutant(
        "clip-1.02",
        "the clip norm is 2 % too large",
        _with_noise(clipping.ClippedToMore),
        Group.LENGTHS,
    ),
    Mutant(
        "clip-of-small-models",
        "updates of more than 100,000 parameters aren't clipped",
        _with_noise(clipping.UnclippedInLargeModels),
        Group.LARGE_MODEL,
    ),
    Mutant(
        "noise-of-small-models",
        "models of more than 100,000 parameters have no noise",
        _with_noise(noise.NoneInLargeModels),
        Group.LARGE_MODEL,
    ),
    Mutant(
        "large-providers-twice",
        "a provider with at least four examples is clipped as two",
        _as(clipping.LargeProvidersTwice),
        Group.CONTRIBUTIONS,
    ),
    Mutant(
        "noise-cut-at-3",
        "no noise is beyond 3 standard deviations",
        _with_noise(noise.CutOff),
        Group.NOISE,
    ),
    Mutant(
        "noise-cut-at-2.5",
        "no noise is beyond 2.5 standard deviations",
        _with_noise(noise.CutOff, largest=2.5),
        Group.NOISE,
    ),
    Mutant(
        "truncated-poisson",
        "samples are coins, but never more than one deviation above their mean",
        _as(sampling.Truncated),
        Group.SAMPLING,
    ),
    Mutant(
        "rate-by-size",
        "large providers take part 10 % more often, small ones 10 % less",
        _as(sampling.RateBySize),
        Group.SAMPLING,
    ),
    Mutant(
        "stopped-early",
        "a client sends no updates any more once their sum has shrunk",
        _as(isolation.StoppedEarly),
        Group.LONG_RUN,
    ),
    Mutant(
        "longer-steps",
        "every ninth step is doubled if a coordinate of the sum without noise is large",
        _as(isolation.LongerSteps),
        Group.LONG_RUN,
    ),
    Mutant(
        "shared-second-moments",
        "the second moments of all providers of a round are shared",
        _as(isolation.SharedSecondMoments),
        Group.CONTRIBUTIONS,
        limit="each synthetic provider has coordinates of its own, in which nobody else moves the moments",
    ),
    Mutant(
        "kept-second-moments",
        "second moments are kept from round to round",
        _as(isolation.SharedSecondMoments, kept=True),
        Group.CARRIED,
        limit="each synthetic provider has coordinates of its own, in which nobody else moves the moments",
    ),
)

MUTANTS = {mutant.name: mutant for mutant in CATALOG}
LIMITS = {mutant.name for mutant in CATALOG if mutant.limit}
