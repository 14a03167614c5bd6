"""Which provider, labeler and consolidator a configuration names, and how each is made.

A built-in has a name; a team's own is a Python module inside the checkout, `{"module": "./x.py"}`, that exports
`create_memory_provider(options)`, `create_labeler(options)` or `create_consolidator(options, builtins)`.

Source: design.md, section 4, `replica.learning-config/v1`.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from learning_core.canonical import parse_json
from learning_core.errors import InvalidConfiguration, LearningError, PluginFailed
from learning_core.plugins import MemoryConsolidator, MemoryLabeler
from learning_core.provider import MemoryProvider
from learning_core.records import check_valid
from learning_core.store.base import read_input

CONFIGURATION_FILE = "config.json"
DEFAULT_CONFIGURATION: Mapping[str, Any] = {"schemaVersion": "replica.learning-config/v1"}


def read_configuration(path: Path) -> Mapping[str, Any]:
    """The configuration of a store; the defaults where there is no file. Raises `InvalidConfiguration`."""
    if not os.path.lexists(path):
        return DEFAULT_CONFIGURATION
    try:
        value = parse_json(read_input(path), max_bytes=1 << 20)
        check_valid("learning-config", value)
    except LearningError as error:
        raise InvalidConfiguration(f"{path} is refused: {error.message}") from error
    configuration: Mapping[str, Any] = value
    return configuration


def create_provider(configuration: Mapping[str, Any], data_directory: Path, modules: Path | None) -> MemoryProvider:
    """The memory provider. `modules` is the folder that a module's path is relative to, None where none is allowed."""
    section = configuration.get("memory", {})
    chosen, options = section.get("provider", "sqlite"), dict(section.get("options", {}))
    if isinstance(chosen, Mapping):
        module_options = {**options, "dataDirectory": str(data_directory)}
        provider: MemoryProvider = _make(chosen, "create_memory_provider", modules, module_options)
        return provider
    if options:
        raise InvalidConfiguration(f"memory.options: the provider {chosen} has no options.")
    if chosen == "sqlite":
        from providers.storage.sqlite import SqliteProvider

        return SqliteProvider(data_directory)
    if chosen == "in-memory":
        from providers.storage.in_memory import InMemoryProvider

        return InMemoryProvider()
    raise InvalidConfiguration(f"memory.provider: {chosen} is not in this version; use sqlite.")


def create_labeler(configuration: Mapping[str, Any], modules: Path | None) -> MemoryLabeler:
    """The labeler; `offline` by default."""
    section = configuration.get("labeling", {})
    chosen, options = section.get("labeler", "offline"), dict(section.get("options", {}))
    if isinstance(chosen, Mapping):
        labeler: MemoryLabeler = _make(chosen, "create_labeler", modules, options)
        return labeler
    if chosen == "offline":
        from providers.labelers import offline

        return offline.create_labeler(options)
    raise InvalidConfiguration(f"labeling.labeler: {chosen} is not in this version; use offline.")


def create_consolidator(configuration: Mapping[str, Any], modules: Path | None) -> MemoryConsolidator:
    """The consolidator; `recurrence` by default. A module is handed the built-in ones, to build on them."""
    from providers.consolidators import none, recurrence

    section = configuration.get("consolidation", {})
    chosen, options = section.get("consolidator", "recurrence"), dict(section.get("options", {}))
    builtins = {
        "create_recurrence_consolidator": recurrence.create_consolidator,
        "create_none_consolidator": none.create_consolidator,
    }
    if isinstance(chosen, Mapping):
        made: MemoryConsolidator = _make(chosen, "create_consolidator", modules, options, builtins)
        return made
    if chosen == "none":
        return none.create_consolidator(options, builtins)
    return recurrence.create_consolidator(options, builtins)


def describe_choice(configuration: Mapping[str, Any], section: str, member: str, default: str) -> str:
    """What a section of the configuration chose, and whether anybody did."""
    chosen = configuration.get(section, {}).get(member)
    if chosen is None:
        return f"{default} (the default)"
    return f"{chosen['module'] if isinstance(chosen, Mapping) else chosen} (from {CONFIGURATION_FILE})"


_METHODS = {
    "create_memory_provider": ("health",),
    "create_labeler": ("label", "close"),
    "create_consolidator": ("consolidate",),
}


def _make(chosen: Mapping[str, str], name: str, modules: Path | None, *arguments: Any) -> Any:
    """What a module's function makes. A failure of the module, whatever it raises, is `PluginFailed`."""
    function = _load(chosen, name, modules)
    try:
        made = function(*arguments)
        manifest = made.manifest()
        named = isinstance(manifest, Mapping) and isinstance(manifest.get("id", manifest.get("name")), str)
        usable = named and all(callable(getattr(made, method, None)) for method in _METHODS[name])
    except LearningError:
        raise
    except (Exception, SystemExit) as error:
        raise PluginFailed(f"{name} of the module {chosen['module']} failed: {type(error).__name__}.") from error
    if not usable:
        raise PluginFailed(f"{name} of the module {chosen['module']} returned something else.")
    return made


def _load(chosen: Mapping[str, str], name: str, modules: Path | None) -> Callable[..., Any]:
    if modules is None:
        raise InvalidConfiguration("A module can be named only in a checkout.")
    root = modules.resolve()
    path = (root / chosen["module"]).resolve()
    if not path.is_relative_to(root) or not path.is_file():
        raise InvalidConfiguration(f"The module {chosen['module']} must be a file inside {root}.")
    try:
        spec = importlib.util.spec_from_file_location(f"replica_learning_{path.stem}", path)
        if spec is None or spec.loader is None:
            raise ImportError("it cannot be loaded")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        function: Callable[..., Any] = getattr(module, name)
    except AttributeError:
        raise PluginFailed(f"The module {chosen['module']} does not export {name}.") from None
    except (Exception, SystemExit) as error:
        raise PluginFailed(f"The module {chosen['module']} cannot be loaded: {type(error).__name__}.") from error
    return function
