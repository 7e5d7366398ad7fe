"""The files that a codec's process may read: what decoding needs, and nothing that makes data or trains.

With the kit's generator of forms and its training, a decoder of a few hundred bytes could train the model by itself.
The kernel enforces this list (Landlock), so that code which removes Python's import hooks gains nothing. What is in
memory before the codec runs is nothing else either: its process is forked from a server that has only loaded
`starter_kit.compression.decoding`.
"""

import importlib.util
import os
import re
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from pathlib import Path

import evaluator
from evaluator.sandbox.sandbox import MACHINE

# What decoding imports, below the folders of the kit and of this package.
KIT_FILES = (
    "__init__.py",
    "own_files.py",
    "plugin.py",
    "plugins/__init__.py",
    "plugins/codecs",
    *(
        f"compression/{name}.py"
        for name in ("__init__", "codecs", "decoding", "directions", "entropy", "plugin_codecs")
    ),
)
EVALUATOR_FILES = (
    "__init__.py",
    "errors",
    *(f"communication/{name}.py" for name in ("__init__", "codecs", "nf4")),
)
# numpy, torch and pydantic, and what these import, at once or later.
PACKAGES = (
    *("numpy", "torch", "torchgen", "functorch", "opt_einsum", "sympy", "mpmath", "networkx"),
    *("jinja2", "markupsafe", "filelock", "fsspec", "tqdm"),
    *("pydantic", "pydantic_core", "annotated_types", "typing_extensions", "typing_inspection"),
)
ALLOWED_IMPORTS = "the standard library, numpy, torch, pydantic, and the modules of the kit's codecs"
LIBRARIES = [Path(name) for name in ("/lib", "/lib64", "/usr/lib", "/usr/lib64")]
_STANDARD = Path(os.__file__).parent
_EVALUATOR = Path(evaluator.__file__).parent
_DENIED = re.compile(r"\[Errno 13\] Permission denied: '([^'…]+)")


def readable_files(kit: Path) -> list[Path]:
    """Return what a codec's process may read, beside its own files.

    Args:
        kit: The folder of the starter kit.
    """
    libraries = [entry for folder in LIBRARIES if folder.is_dir() for entry in _without_packages(folder)]
    shared = Path(sysconfig.get_config_var("LIBDIR") or _STANDARD).glob("*.so*")
    loaded = Path(sysconfig.get_config_var("DESTSHARED") or _STANDARD / "lib-dynload")
    return [
        *MACHINE,
        *libraries,
        *shared,
        *_without_packages(_STANDARD),
        loaded,
        *_packages(),
        *(kit / name for name in KIT_FILES),
        *(_EVALUATOR / name for name in EVALUATOR_FILES),
    ]


def listable_folders(kit: Path) -> list[Path]:
    """Return the folders of which a codec's process may see the names of files: imports look there."""
    return [kit, _EVALUATOR, _STANDARD, *{path.parent for path in _packages()}]


def denied_import(text: str, kit: Path) -> str:
    """Return the module that the text of an error names as a file which must not be read; "" if it names none."""
    found = _DENIED.search(text)
    path = Path(found[1]) if found else Path()
    # Of a folder in another one, modules have the shorter names.
    roots = sorted({*map(Path, sys.path), kit.parent, _EVALUATOR.parent}, key=lambda root: -len(root.parts))
    inside = next((path.relative_to(root) for root in roots if path.is_relative_to(root)), None)
    if inside is None or inside.suffix != ".py":
        return ""
    return ".".join(part for part in inside.with_suffix("").parts if part != "__init__")


def _packages() -> Iterator[Path]:
    for name in PACKAGES:
        if spec := importlib.util.find_spec(name):
            yield from map(Path, spec.submodule_search_locations or [spec.origin or ""])


def _without_packages(folder: Path) -> Iterable[Path]:
    """Return what is in a folder of libraries, but not what is installed for Python there."""
    return [
        entry
        for entry in folder.iterdir()
        if entry.name not in {"site-packages", "dist-packages"} and not entry.name.startswith("python")
    ]
