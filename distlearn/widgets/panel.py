"""What the explorers of one hardware rule share: controls, a picture to point at, numbers, words.

The script of an explorer computes what `Panel.view` computes, to the letter, for whatever a reader
sets; a reader without JavaScript has the first setting in numbers and words.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any, ClassVar, NamedTuple

from distlearn.widgets.face import StaticFace, asset


class View(NamedTuple):
    """What is shown of a setting: (name, value, note) of each number, words, and a refusal."""

    numbers: tuple[tuple[str, str, str], ...]
    words: str
    message: str = ""


class Panel(StaticFace):
    """Base of the explorers.

    Subclasses set ``label``, ``scripts``, ``mount``, ``picture`` (the picture's name, with its keys
    for a screen reader) and ``hint``, and write `controls` and `view`.

    Attributes
    ----------
    setting : dict
        What the controls say, by their names.
    """

    picture: ClassVar[str]
    hint: ClassVar[str]

    def __init__(self, **setting: Any) -> None:
        self.setting: dict[str, Any] = setting

    @property
    def status(self) -> str:
        """What is shown at first, in words."""
        view = self.view()
        return view.message or view.words

    def controls(self) -> Sequence[str]:
        """HTML of the controls: `slider`, `choice`, `switch`."""
        raise NotImplementedError

    def view(self) -> View:
        """The first setting."""
        raise NotImplementedError

    def extra(self) -> str:
        """HTML between the controls and the picture."""
        return ""

    def static_body(self, ident: str) -> str:
        """Controls, an empty picture, and the first setting in numbers and words."""
        view = self.view()
        rows = "".join(f'<div><dt>{escape(name)}</dt><dd class="dl-value">{escape(value)}</dd>'
                       f"<dd>{escape(note)}</dd></div>" for name, value, note in view.numbers)
        hidden = "" if view.message else " hidden"
        return (
            f'<style>{asset("panel.css")}</style><div class="dl-controls">'
            f'{"".join(self.controls())}</div>{self.extra()}\n'
            f'<div class="dl-message" role="alert"{hidden}>{escape(view.message)}</div>'
            # keys that mean something here are not JupyterLab's
            '<div class="dl-scroll" tabindex="0" role="group" data-lm-suppress-shortcuts="true" '
            f'aria-label="{escape(self.picture)}">'
            f'</div><p class="dl-pointed">{escape(self.hint)}</p>'
            f'<div class="dl-numbers"><dl>{rows}</dl></div>'
            f'<p class="dl-words">{escape(view.words)}</p>'
            '<p class="dl-unseen" role="status"></p>')

    def static_data(self) -> dict[str, Any]:
        """The first setting; subclasses add what their script needs."""
        return {"setting": self.setting}


def slider(name: str, value: int, low: int, high: int, step: int = 1, note: str = "") -> str:
    """A slider with its value beside it."""
    return (f'<label class="dl-control"><span><b>{name}</b> <small>{note}</small></span>'
            f'<input type="range" name="{name}" min="{low}" max="{high}" step="{step}" '
            f'value="{value}" autocomplete="off"><output>{value}</output></label>')


def field(name: str, value: int, low: int, high: int, step: int = 1, note: str = "") -> str:
    """A number to type."""
    return (f'<label class="dl-control dl-field"><span><b>{name}</b> <small>{note}</small></span>'
            f'<input type="number" name="{name}" min="{low}" max="{high}" step="{step}" '
            f'value="{value}" autocomplete="off"></label>')


def choice(name: str, value: object, options: Sequence[object] | Mapping[Any, str],
           note: str = "") -> str:
    """A list to choose from."""
    named = options if isinstance(options, Mapping) else {key: str(key) for key in options}
    rows = "".join(f'<option value="{escape(str(key))}"{" selected" if key == value else ""}>'
                   f"{escape(text)}</option>" for key, text in named.items())
    return (f'<label class="dl-control"><span><b>{name}</b> <small>{note}</small></span>'
            f'<select name="{name}" autocomplete="off">{rows}</select></label>')


def switch(name: str, value: bool, note: str = "") -> str:
    """A box to tick."""
    return (f'<label class="dl-control dl-switch"><span><b>{name}</b> <small>{note}</small></span>'
            f'<input type="checkbox" name="{name}"{" checked" if value else ""} '
            'autocomplete="off"></label>')


def steps_of(step: int, last: int) -> str:
    """Buttons and a slider to go through steps, for the script's `stepKey` and `stepPlayer`."""
    buttons = "".join(
        f'<button type="button" data-go="{key}" aria-label="{words}">{name}</button>'
        for name, key, words in (("first", "Home", "first step"), ("back", "ArrowLeft",
                                 "back one step"), ("play", "play", "play the steps"),
                                ("next", "ArrowRight", "next step"),
                                 ("last", "End", "last step")))
    return (f'<div class="dl-steps" role="group" aria-label="Steps">{buttons}'
            f'{slider("step", step, 0, last)}</div>')


def whole(name: str, value: object, low: int, high: int, step: int = 1) -> int:
    """An integer argument within what its control can show.

    Raises
    ------
    ValueError
        Naming the argument, its value and the rule.
    """
    if (not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high
            or (value - low) % step):
        steps = "" if step == 1 else f" in steps of {step}"
        raise ValueError(f"{name} must be an integer from {low} to {high}{steps}; got {value!r}")
    return value


def one_of(name: str, value: Any, options: Sequence[Any] | Mapping[Any, Any]) -> Any:
    """An argument that is one of a list; errors as `whole`."""
    if value not in options:
        raise ValueError(f"{name} must be one of {', '.join(map(str, options))}; got {value!r}")
    return value
