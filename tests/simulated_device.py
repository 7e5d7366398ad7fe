"""A device that isn't there: tensors that compute on the CPU and behave as those of a GPU where they meet others.

A tensor of this device holds one of the CPU. An operation that would fail on a GPU, as a tensor of the CPU meets one of
the device, fails here too; what would make the host wait for a GPU, and each copy that can't run beside the host, is
counted by the function of the project that asked for it. Kernels, their rounding, memory and streams aren't simulated.

A process must know the device before its first backward pass, so tests use it in a process of its own.
"""

import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode, return_and_correct_aliasing
from torch.utils._pytree import tree_flatten, tree_map_only
from torch.utils.backend_registration import _DummyBackendModule, _setup_privateuseone_for_python_backend

NAME = "simulated"
ROOT = Path(__file__).parents[1]
ATEN = torch.ops.aten
# The shape of their result depends on values, which the host waits for.
WAITING = {
    ATEN._local_scalar_dense,
    ATEN.bincount,
    ATEN.equal,
    ATEN.is_nonzero,
    ATEN.masked_select,
    ATEN.nonzero,
    ATEN.unique_consecutive,
    ATEN._unique2,
}


class DeviceTensor(Tensor):
    """A tensor of the device, which holds one of the CPU."""

    held: Tensor

    @staticmethod
    def __new__(cls, held: Tensor) -> "DeviceTensor":
        made: DeviceTensor = Tensor._make_wrapper_subclass(
            cls,
            held.shape,
            strides=held.stride(),
            storage_offset=held.storage_offset(),
            dtype=held.dtype,
            device=torch.device(NAME, 0),
            requires_grad=False,
        )
        made.held = held
        return made

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        # What has no kernel: where the numbers lie.
        if func in (Tensor.data_ptr, Tensor.untyped_storage):
            return func(args[0].held)
        if func is Tensor.tolist:
            return args[0].cpu().tolist()
        with torch._C.DisableTorchFunctionSubclass():
            return func(*args, **(kwargs or {}))

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        return _computed(func, args, kwargs or {}, None)


@dataclass
class Watch(TorchDispatchMode):
    """What happened inside a block, by the project's function that asked for it.

    Attributes:
        waits: How often the host waited for the device.
        unpinned: Copies to the device from memory that isn't pinned.
    """

    waits: Counter[str] = field(default_factory=Counter)
    unpinned: Counter[str] = field(default_factory=Counter)
    _pinned: list[Tensor] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _computed(func, args, kwargs or {}, self)

    def is_pinned(self, tensor: Tensor) -> bool:
        return any(tensor is pinned for pinned in self._pinned)

    def pin(self, tensor: Tensor) -> Tensor:
        if not self.is_pinned(tensor):
            tensor = tensor.clone()
            self._pinned.append(tensor)
        return tensor


@contextmanager
def device() -> Iterator[tuple[torch.device, Watch]]:
    """Inside the block the device is there; yield it, with what happens meanwhile."""
    if not hasattr(torch, NAME):
        _setup_privateuseone_for_python_backend(NAME, backend_module=_Module())
    swapped = torch.__future__.get_swap_module_params_on_conversion()
    # So that tied weights stay tied where a model moves.
    torch.__future__.set_swap_module_params_on_conversion(True)
    try:
        # Under `inference_mode`, wrapped tensors lack what they need.
        with (
            patch.object(torch._C, "_InferenceMode", _without_gradients),
            Watch() as watch,
            # In any thread.
            patch.object(Tensor, "pin_memory", lambda tensor: watch.pin(tensor)),
        ):
            yield torch.device(NAME, 0), watch
    finally:
        torch.__future__.set_swap_module_params_on_conversion(swapped)


class _Module(_DummyBackendModule):
    def get_amp_supported_dtype(self) -> list[torch.dtype]:
        return [torch.bfloat16]


def _without_gradients(mode: bool) -> Any:
    return torch.no_grad() if mode else nullcontext()


def _is_here(place: Any) -> bool:
    return place is not None and torch.device(place).type == NAME


def _computed(func: Any, args: Any, kwargs: Any, watch: Watch | None) -> Any:
    """Return what an operation gives, on the device if its tensors or its argument `device` say so."""
    packet, tensors = (
        func.overloadpacket,
        [each for each in tree_flatten((args, kwargs))[0] if isinstance(each, Tensor)],
    )
    ours = [each for each in tensors if isinstance(each, DeviceTensor)]
    target = kwargs.get("device")
    if packet is ATEN._to_copy and target is not None:
        return _moved(func, args, kwargs, watch)
    if packet is ATEN.copy_ and isinstance(args[0], DeviceTensor) is not isinstance(args[1], DeviceTensor):
        _note_copy(watch, args[1], args[2] if len(args) > 2 else kwargs.get("non_blocking", False))
        held = tree_map_only(DeviceTensor, lambda each: each.held, args)
        func(*held, **kwargs)
        return args[0]
    if ours:
        for each in tensors:
            # A number without dimensions may be on the CPU.
            if not isinstance(each, DeviceTensor) and each.dim() and packet is not ATEN.lift_fresh:
                raise RuntimeError(f"{func}: a tensor {tuple(each.shape)} of the CPU meets one of the device")
        if watch and (packet in WAITING or _waits(packet, args, kwargs)):
            watch.waits[_place()] += 1
    elif not _is_here(target):
        return func(*args, **kwargs)
    held_args, held_kwargs = tree_map_only(DeviceTensor, lambda each: each.held, (args, kwargs))
    if _is_here(target):
        held_kwargs["device"] = "cpu"
    result = func(*held_args, **held_kwargs)
    if packet is ATEN._local_scalar_dense:
        return result
    wrapped = tree_map_only(Tensor, DeviceTensor, result)
    return return_and_correct_aliasing(func, args, kwargs, wrapped) if ours else wrapped


def _waits(packet: Any, args: Any, kwargs: Any) -> bool:
    if packet in (ATEN.index, ATEN.index_put, ATEN.index_put_, ATEN._index_put_impl_):
        return any(each is not None and each.dtype in (torch.bool, torch.uint8) for each in args[1])
    return packet is ATEN.repeat_interleave and kwargs.get("output_size") is None


def _moved(func: Any, args: Any, kwargs: Any, watch: Watch | None) -> Tensor:
    tensor, to_device = args[0], _is_here(kwargs["device"])
    is_ours = isinstance(tensor, DeviceTensor)
    if is_ours is not to_device:
        _note_copy(watch, tensor, kwargs.get("non_blocking", False))
    copy: Tensor = func(tensor.held if is_ours else tensor, **{**kwargs, "device": "cpu"})
    return DeviceTensor(copy) if to_device else copy


def _note_copy(watch: Watch | None, source: Tensor, non_blocking: bool) -> None:
    if watch is None:
        return
    if isinstance(source, DeviceTensor):
        watch.waits[_place()] += 1
    elif not (non_blocking and watch.is_pinned(source)) and source.dim():
        watch.unpinned[_place()] += 1


def _place() -> str:
    """Return the innermost function of the project's packages that is running; empty in autograd's threads."""
    frame = sys._getframe()
    while frame.f_back:
        frame = frame.f_back
        path = Path(frame.f_code.co_filename)
        if path.is_relative_to(ROOT) and path.relative_to(ROOT).parts[0] in ("starter_kit", "evaluator"):
            return frame.f_code.co_qualname.partition(".<locals>")[0]
    return ""
