"""What a node reads and what else its spec says, found from the spec's fields.

A field of type ``NodeId`` is an input, one of type ``tuple[NodeId, ...]`` several; only a delta join's are deeper.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Final, TypeVar

from ivm.graph import DeltaJoin, NodeId, Path, Spec

S = TypeVar("S", bound=Spec)


def inputs(spec: Spec) -> tuple[NodeId, ...]:
    """The nodes that a node reads, without a loop variable's body."""
    if isinstance(spec, DeltaJoin):
        return _of_paths(spec.paths)
    known = _fields_of(spec)
    one = tuple([getattr(spec, name) for name in known.one])
    return one if known.several is None else one + getattr(spec, known.several)


def with_inputs(spec: S, place: Mapping[NodeId, NodeId]) -> S:
    """The same spec with its inputs renumbered by a map; the spec itself if they keep their numbers."""
    if all(place[i] == i for i in inputs(spec)):
        return spec
    if isinstance(spec, DeltaJoin):
        return replace(spec, paths=tuple(_placed(path, place) for path in spec.paths))
    known = _fields_of(spec)
    moved: dict[str, Any] = {name: place[getattr(spec, name)] for name in known.one}
    if known.several is not None:
        moved[known.several] = tuple(place[i] for i in getattr(spec, known.several))
    return replace(spec, **moved)


def parameters(spec: Spec) -> tuple[object, ...]:
    """The values of a spec's other fields, in order."""
    return tuple(getattr(spec, name) for name in _fields_of(spec).others)


@dataclass(frozen=True, slots=True)
class _Fields:
    """A kind's fields by name: those that hold one input, the one that holds several (None: there is none), others."""

    one: tuple[str, ...]
    several: str | None
    others: tuple[str, ...]


_KNOWN: Final[dict[type[Spec], _Fields]] = {}
"""By kind, because planning asks for each node's inputs many times."""


def _fields_of(spec: Spec) -> _Fields:
    kind = type(spec)
    if kind not in _KNOWN:
        types = {f.name: f.type for f in fields(kind)}
        one = tuple(name for name, type_ in types.items() if type_ == "NodeId")
        several = next((name for name, type_ in types.items() if type_ == "tuple[NodeId, ...]"), None)
        _KNOWN[kind] = _Fields(one, several, tuple(name for name in types if name not in (*one, several)))
    return _KNOWN[kind]


def _of_paths(paths: tuple[Path, ...]) -> tuple[NodeId, ...]:
    """Each node once, the paths' starts first."""
    found = dict.fromkeys(path.start for path in paths)
    for path in paths:
        found |= dict.fromkeys(lookup.node for stage in path.stages for lookup in stage)
    return tuple(found)


def _placed(path: Path, place: Mapping[NodeId, NodeId]) -> Path:
    stages = tuple(tuple(replace(k, node=place[k.node]) for k in stage) for stage in path.stages)
    return replace(path, start=place[path.start], stages=stages)
