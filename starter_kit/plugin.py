"""Plug-ins: a codec, a local optimizer, a hook of local training or a server optimizer, each in one Python file.

A plug-in is a class whose fields are its settings. Settings name it where it is used, alone or with settings of its
own:

    codec: topk
    codec: {type: topk, fraction: 0.01}
    codec: {type: my_codec.py, levels: 7}

A name is that of one of the kit's, in starter_kit/plugins; a path is that of a participant's own file, found as a
method's is: from the config's folder, then from the current one. A file is looked for while a config is read and never
otherwise, so that no message or dump of settings makes a process run one.
"""

import importlib
import inspect
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError, ValidationInfo
from pydantic.functional_serializers import PlainSerializer
from pydantic.functional_validators import PlainValidator

from evaluator.errors import ErrorCode, ProblemError
from starter_kit.own_files import OwnFile, file_of, loaded_file, named, place_in, run_own_file

PLUGINS = Path(__file__).parent / "plugins"
# The key of the SHA-256 of a plug-in's file, in the settings that a run stores.
SHA256 = "sha256"
# The keys of the config's path in the context of a validation, and of where its settings were given instead.
CONFIG, ORIGINS = "config", "origins"


class Plugin(BaseModel):
    """A plug-in with its settings, which its class defines as fields."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    @property
    def name(self) -> str:
        """The name in the settings: of one of the kit's plug-ins, or of a file."""
        file = file_of(type(self))
        return file.path.name if file else type(self).__module__.rpartition(".")[2].replace("_", "-")

    def __str__(self) -> str:
        return self.name

    def try_out(self) -> None:
        """Use the plug-in on a few made-up values, before a run; raise an error where it doesn't work."""


PluginT = TypeVar("PluginT", bound=Plugin)


@dataclass(frozen=True)
class PluginKind:
    """A kind of plug-in, and how it is found.

    Attributes:
        setting: The setting that names it.
        class_name: The name of the class in a file.
        base: What the class is derived from.
        folder: The kit's own, in starter_kit/plugins.
        option: The option of `pfl new` that starts one.
        about: What it does, as a noun phrase.
        built_in: Names that are not plug-ins, but may stand in their place.
    """

    setting: str
    class_name: str
    base: type[Plugin]
    folder: str
    option: str
    about: str
    built_in: tuple[str, ...] = ()

    @property
    def names(self) -> list[str]:
        """The names of the kit's own."""
        return sorted(path.stem.replace("_", "-") for path in (PLUGINS / self.folder).glob("[a-z]*.py"))

    def module(self, name: str) -> ModuleType:
        """Import the module of one of the kit's own."""
        return importlib.import_module(f"starter_kit.plugins.{self.folder}.{name.replace('-', '_')}")

    def plugin_class(self, name: str) -> type[Plugin]:
        """Return the class of one of the kit's own."""
        found: type[Plugin] = getattr(self.module(name), self.class_name)
        return found

    @property
    def reader(self) -> PlainValidator:
        """How a name or a group of settings becomes a plug-in that was tried out, as an annotation of the setting."""
        return PlainValidator(self._read)

    def _read(self, value: Any, info: ValidationInfo) -> Any:
        if value is None or isinstance(value, self.base) or value in self.built_in:
            return value
        context = info.context or {}
        config: Path | None = context.get(CONFIG)
        where = context.get(ORIGINS, {}).get(self.setting) or ", ".join(
            [*([config.name] if config else []), self.setting]
        )
        match value:
            case str():
                return self._plugin({"type": value}, config, where)
            case {"type": str()}:
                return self._plugin(value, config, where)
        raise self._unknown(where, value)

    def _plugin(self, values: Mapping[str, Any], config: Path | None, where: str) -> Plugin:
        found = self._class(values, config, where)
        own = {name: value for name, value in values.items() if name not in ("type", SHA256)}
        try:
            plugin = found.model_validate_json(json.dumps(own, default=str), strict=True)
        except ValidationError as error:
            raise _wrong_settings(error, found, where) from error
        with reported(plugin):
            plugin.try_out()
        return plugin

    def _class(self, values: Mapping[str, Any], config: Path | None, where: str) -> type[Plugin]:
        name = str(values["type"])
        if name in self.names:
            return self.plugin_class(name)
        module = self._own_file(values, config, where)
        found = getattr(module, self.class_name, None)
        if (
            not (isinstance(found, type) and issubclass(found, self.base))
            or found.__module__ != module.__name__
        ):
            raise self._no_class(where, module, f"no class {self.class_name} that is derived from it")
        if inspect.isabstract(found):
            raise self._no_class(where, module, f"one without {', '.join(sorted(found.__abstractmethods__))}")
        return found

    def _own_file(self, values: Mapping[str, Any], config: Path | None, where: str) -> OwnFile:
        """Return the file that a group of settings names, run once for each content."""
        stored = values.get(SHA256)
        if stored and (known := loaded_file(str(stored))):
            return known
        path = find_python_file(values["type"], config) if config else None
        if path is None:
            raise self._unknown(where, values["type"])
        file = run_own_file(path, again=False)
        if stored and stored != file.sha256:
            raise ProblemError.of(
                ErrorCode.CONFIGURATION,
                where=f"{where}.{SHA256}",
                expected=f"{stored}, the SHA-256 of the plug-in's file",
                found=f"{file.sha256}, of {file.path}",
                next_step=f"The plug-in has changed. To train with it as it is now, remove {SHA256}.",
            )
        return file

    def _unknown(self, where: str, found: object) -> ProblemError:
        known = ", ".join([*self.built_in, *self.names])
        return ProblemError.of(
            ErrorCode.CONFIGURATION,
            where=where,
            expected=f"one of {known}; a Python file; or a group with its type and settings",
            found=found,
            next_step=f"`pfl methods` lists the kit's plug-ins; `pfl new NAME {self.option}` starts one of your own.",
        )

    def _no_class(self, where: str, module: OwnFile, found: str) -> ProblemError:
        return ProblemError.of(
            ErrorCode.CONFIGURATION,
            where=f"{where}, {module.path.name}",
            expected=f"a class {self.class_name} of its own, derived from {self.base.__module__}.{self.base.__name__}",
            found=found,
            next_step=f"`pfl new NAME {self.option}` writes a file that works.",
        )


# How a plug-in is written as settings that name it and its file's content, as an annotation of the setting.
WRITER = PlainSerializer(lambda value: _written(value))


@contextmanager
def reported(plugin: Plugin) -> Iterator[None]:
    """Inside the block, report an error as a problem of the plug-in.

    Raises:
        ProblemError: (`E_CONFIGURATION`) There was one.
    """
    try:
        yield
    except ProblemError:
        raise
    except Exception as error:
        # Where an error was raised for another one, the first names the line.
        cause = error.__cause__ or error
        file = file_of(type(plugin))
        raise ProblemError.of(
            ErrorCode.CONFIGURATION,
            message="A plug-in doesn't work.",
            where=place_in(file.path, cause) if file else str(plugin),
            expected=f"the contract documented in {type(plugin).__mro__[1].__name__}",
            found=named(cause),
            next_step="Correct its file or its settings; `pfl new` writes plug-ins that work, with their tests.",
        ) from error


def plugins_in(settings: BaseModel) -> Iterator[tuple[str, Plugin]]:
    """Yield the plug-ins in the settings, each with its setting's dotted name."""
    for name in type(settings).model_fields:
        value = getattr(settings, name)
        if isinstance(value, Plugin):
            yield name, value
        elif isinstance(value, BaseModel):
            for below, plugin in plugins_in(value):
                yield f"{name}.{below}", plugin


def _written(value: Any) -> Any:
    if not isinstance(value, Plugin):
        return value
    file = file_of(type(value))
    hashed = {SHA256: file.sha256} if file else {}
    return {"type": value.name, **hashed, **value.model_dump(mode="json")}


def _wrong_settings(error: ValidationError, known: type[Plugin], where: str) -> ProblemError:
    problems = []
    for detail in error.errors(include_url=False):
        place = ".".join(map(str, detail["loc"]))
        extra = detail["type"] == "extra_forbidden"
        names = ", ".join(known.model_fields) or "none"
        problems += ProblemError.of(
            ErrorCode.CONFIGURATION,
            where=f"{where}.{place}" if place else where,
            expected=f"one of the plug-in's settings: {names}" if extra else detail["msg"],
            found="nothing" if detail["type"] == "missing" else json.dumps(detail["input"], default=str),
            next_step="Correct the setting; docs/settings.md lists those of the kit's plug-ins.",
        ).problems
    return ProblemError(*problems)


def find_python_file(name: str, config: Path) -> Path | None:
    """Return the Python file of this path, from the config's folder or else from the current one, if there is one."""
    places = (config.parent / name, Path(name))
    return next((path for path in places if path.suffix == ".py" and is_file(path)), None)


def is_file(path: Path) -> bool:
    """Whether there is a file at `path`, whatever the path is."""
    try:
        return path.is_file()
    except OSError:
        # For example, a name that is too long for a path.
        return False
