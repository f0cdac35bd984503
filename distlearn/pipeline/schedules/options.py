"""Options of a schedule: only those it has, each of the type that its signature names."""

from __future__ import annotations

import inspect
import math
from collections.abc import Mapping
from operator import index
from typing import Any

from distlearn.pipeline.costs import Costs

Parameters = Mapping[str, inspect.Parameter]

_WORDS = {"int": "an integer", "float": "a number", "bool": "True or False", "str": "text",
          "Costs": "a Costs, or a mapping of its fields"}


def check_options(name: str, options: Mapping[str, Any], order: Parameters, called: Parameters
                  ) -> dict[str, Any]:
    """The options as the called function takes them: a mapping of costs becomes a `Costs`.

    Parameters
    ----------
    name : str
        The schedule.
    options : mapping
        What was given.
    order, called : mapping of str to Parameter
        Parameters of the function that makes the schedule, and of the one to be called: that one,
        or a closed formula.

    Raises
    ------
    ValueError
        Naming the option that the schedule does not have, or whose value is of a wrong type.
    """
    own = [key for key, x in order.items()
           if key not in ("p", "m", "v") and x.kind is not inspect.Parameter.VAR_KEYWORD]
    passes_on = any(x.kind is inspect.Parameter.VAR_KEYWORD for x in called.values())
    result: dict[str, Any] = {}
    for key, value in options.items():
        if key not in own and key not in called and key != "costs" and not passes_on:
            has = ", ".join(sorted(own)) or "none"
            raise ValueError(f"{name} has no option {key!r}; its options: {has}")
        parameter = called.get(key, order.get(key))
        annotation = "Costs" if key == "costs" else str(parameter.annotation) if parameter else ""
        result[key] = _typed(f"{name} needs {key}", annotation, value)
    return result


def _typed(need: str, annotation: str, value: Any) -> Any:
    wanted, _, other = annotation.partition(" | ")
    if wanted not in _WORDS or (value is None and (other == "None" or wanted == "Costs")):
        return value
    if wanted == "Costs" and isinstance(value, Mapping):
        try:
            return Costs(**value)
        except TypeError as error:
            raise ValueError(f"{need} to be {_WORDS[wanted]}; {error}") from None
    if wanted == "int" and hasattr(value, "__index__") and not isinstance(value, bool):
        return index(value)
    if wanted == "float" and _is_number(value):
        return value
    if wanted == "bool" and isinstance(value, bool):
        return value
    if (wanted == "str" and isinstance(value, str)) or isinstance(value, Costs):
        return value
    alternative = " or None" if other == "None" else ""
    raise ValueError(f"{need} to be {_WORDS[wanted]}{alternative}; got {value!r}")


def _is_number(value: Any) -> bool:
    if isinstance(value, bool | str):
        return False
    try:
        return not math.isnan(value)
    except TypeError:
        return False
