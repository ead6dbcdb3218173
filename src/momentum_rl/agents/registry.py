"""The algorithms by name: this package's, and those of other modules.

Where an algorithm accepts momentum, ``momentum-NAME`` is known too, with its options and what
``momentum`` lets one choose. A module is named on the command line, ``movi train mine:ALGORITHM``:
that is a dataclass of options (``momentum_rl.core.options``), or an ``Algorithm``, which has those
of its β, if it has one.
"""

import dataclasses
from collections.abc import Collection, Mapping
from functools import cache
from typing import Any, get_type_hints

from momentum_rl.agents import sac  # noqa: F401  (declares it)
from momentum_rl.core.options import NETWORKS, TITLES, Averaging, Options, Unknown, combined
from momentum_rl.core.targets import Algorithm, DistributionalMomentum, Momentum
from momentum_rl.core.values import NUMBER
from momentum_rl.errors import UserError, door
from momentum_rl.plumbing.modules import import_trusted, module_of
from momentum_rl.plumbing.reading import checked

MOMENTUM = "momentum-"


def _with_momentum(known: Mapping[str, type[Options]]) -> dict[str, type[Options]]:
    """The algorithms, each followed by what momentum makes of it."""
    result = {}
    for name, kind in known.items():
        result[name] = kind
        declares = kind.algorithm is not Options.algorithm
        algorithm = kind().algorithm() if declares else None
        if algorithm is not None and algorithm.accepts_momentum:
            numbers = algorithm.kind(algorithm.value_table) == NUMBER
            mixin = Momentum if numbers else DistributionalMomentum
            result[MOMENTUM + name] = combined(mixin, kind)
            title = TITLES.get(name) or kind.title or name
            hyphen = " " if {" ", "-"} & set(title) else "-"
            TITLES[MOMENTUM + name] = f"Momentum{hyphen}{title}"
    return result


_REGISTERED = _with_momentum(NETWORKS)
_OURS = dict(_REGISTERED)


def _registered() -> dict[str, type[Options]]:
    """All that are known so far, with what was declared since they were listed."""
    if new := {name: kind for name, kind in NETWORKS.items() if name not in _REGISTERED}:
        _REGISTERED.update(_with_momentum(new))
    return _REGISTERED


@door
def register(name: str, algorithm: type[Options] | Algorithm) -> None:
    """Make an algorithm known by a name in this process, and what momentum makes of it.

    >>> from momentum_rl.core.targets import AVI, Algorithm, Target, greedy_value
    >>> half = Algorithm("half", {"q": Target(greedy_value,
    ...     lambda values, a, r, discount, v, beta: r + discount * v / 2)}, accepts_momentum=True)
    >>> register("half", half)
    >>> options_of("half").algorithm() is half
    True
    >>> options_of("momentum-half").beta_of(100)(50)
    0.9090909090909091
    """
    if not name:
        raise UserError(f"algorithm: {name!r}, expected a name")
    one: Any = algorithm
    kind = declared(one)
    if name in _OURS and _OURS[name] is not kind:
        raise UserError(f"algorithm: {name!r} is one of this package's, expected another name")
    if _REGISTERED.get(name) is not kind:
        _REGISTERED.update(_with_momentum({name: kind}))


@cache
def declared(algorithm: Any) -> type[Options]:
    """The dataclass of an algorithm's options."""
    if isinstance(algorithm, type):
        name = algorithm.__name__
        if not issubclass(algorithm, Options) or "__dataclass_fields__" not in vars(algorithm):
            raise UserError(f"algorithm: {name}, expected a dataclass of momentum_rl.Options")
        if algorithm.algorithm is Options.algorithm and not hasattr(algorithm, "method"):
            raise UserError(f"algorithm: {name} has no algorithm(), expected one")
        for field in dataclasses.fields(algorithm):
            if field.default is field.default_factory is dataclasses.MISSING:
                raise UserError(f"algorithm: {name}.{field.name} has no default, expected one")
        return algorithm
    if not hasattr(algorithm, "targets"):
        raise UserError(f"algorithm: {algorithm!r}, expected an Algorithm or a class of Options")
    base = Averaging if algorithm.uses_beta else Options
    methods = {"title": algorithm.name, "algorithm": lambda self: algorithm}
    return dataclasses.dataclass(frozen=True)(type(algorithm.name, (base,), methods))


def names() -> list[str]:
    """All names.

    >>> names()[:3]
    ['dqn', 'momentum-dqn', 'deep-sql']
    """
    return [*_registered()]


def known(name: str) -> type[Options] | None:
    """The options of an algorithm; None if it is unknown. Imports no module that a file names."""
    return _registered().get(name)


def find(name: str, trust: Collection[str] = ()) -> type[Options]:
    """The options of an algorithm, whose module is imported if it is trusted.

    >>> find("dqm")
    Traceback (most recent call last):
    momentum_rl.errors.UserError: algorithm: 'dqm', expected one of dqn, ...
    """
    kind = known(name)
    if kind is None and ":" in name:
        module, what = module_named(name), f"algorithm: {name!r}"
        base = name.removeprefix(MOMENTUM)
        attribute = base.removeprefix(f"{module}:")
        algorithm = getattr(import_trusted(module, trust, what), attribute, None)
        if algorithm is None:
            raise UserError(f"{what}: the module {module!r} has no {attribute!r}")
        register(base, algorithm)
        kind = known(name)
        if kind is None:
            raise UserError(f"{what}: {base} does not accept momentum (accepts_momentum is False)")
    if kind is None:
        raise UserError(f"algorithm: {name!r}, expected one of {', '.join(names())} or MODULE:NAME")
    return kind


def module_named(name: str) -> str:
    """The module that an algorithm's name names, or its momentum's; "" for a plain name.

    >>> module_named("mine:X"), module_named("momentum-mine:X"), module_named("momentum-dqn")
    ('mine', 'mine', '')
    """
    return module_of(name.removeprefix(MOMENTUM), "algorithm")


def options_of(name: str, given: Any = None) -> Options:
    """The options of an algorithm from a mapping of some of them; unchecked if it is unknown.

    >>> options_of("momentum-dqn", {"beta": 0.9}).beta
    0.9
    >>> options_of("dqn", {"beta": 0.9})
    Traceback (most recent call last):
    momentum_rl.errors.UserError: options: dqn has no 'beta', expected none
    """
    kind = known(name)
    if isinstance(given, Options) and not isinstance(given, Unknown):
        if kind is not None and type(given) is not kind:
            raise UserError(f"options: of {type(given).__name__}, expected those of {name}")
        return given
    if not isinstance(given, Unknown | Mapping | None):
        raise UserError(f"options: {given!r}, expected the options of {name} by their names")
    values = given.to_json() if isinstance(given, Unknown) else dict(given or {})
    return Unknown.of(values) if kind is None else options_for(kind, name, values)


def options_for(kind: type[Options], name: str, values: Mapping[str, Any]) -> Options:
    """Options of a dataclass from some of them by their names, checked."""
    fields = [field.name for field in dataclasses.fields(kind)]
    unknown = sorted(set(values) - set(fields))
    if unknown:
        expected = f"some of {', '.join(fields)}" if fields else "none"
        raise UserError(f"options: {name} has no {unknown[0]!r}, expected {expected}")
    hints = get_type_hints(kind)
    return kind(**{key: checked(value, hints[key], key) for key, value in values.items()})


def title_of(name: str) -> str:
    """What an algorithm is called in figures and tables.

    >>> title_of("momentum-dqn"), title_of("mine:OWN")
    ('Momentum-DQN', 'mine:OWN')
    """
    kind = known(name)
    return TITLES.get(name) or (kind.title if kind is not None else "") or name
