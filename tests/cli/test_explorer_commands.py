"""The command that the pipeline explorer offers to copy gives the numbers that it shows."""

import html
import json
import shlex

import pytest

from distlearn.pipeline import NAMES, Costs, build, simulate
from distlearn.widgets.pipeline_view import Setting, look_at, traits_of
from distlearn.widgets.variants import VARIANTS


def cases():
    yield from ((name, option, 0.0) for name in NAMES for option in ("", *VARIANTS.get(name, ())))
    yield from ((name, "", 2.0) for name in NAMES if traits_of(name).limited)


@pytest.mark.parametrize("live", [True, False], ids=["live", "page"])
def test_command_and_call_give_the_same_numbers(cli, live):
    for name, option, limit in cases():
        traits = traits_of(name, option)
        if live and not (traits.searched or traits.limited):
            continue  # the page's texts are the same
        setting = Setting(name, 4, 8, 2 if traits.v else traits.fixed,
                          F=1.3, B=2.0, W=0.7 if traits.W else None, comm=0.1, limit=limit,
                          option=option)
        view = look_at(setting, search=live)
        assert not view.message, (setting, view.message)
        timeline = eval(html.unescape(view.call),
                        {"build": build, "simulate": simulate, "Costs": Costs})
        words = shlex.split(html.unescape(view.command))
        assert words[0] == "distlearn"
        result = cli(*words[1:], "--json")
        assert result.exit_code == 0, (view.command, result.stderr)
        data = json.loads(result.stdout)
        assert data["makespan"] == timeline.makespan, view.command
        assert data["bubble_fraction"] == timeline.bubble_fraction
        assert tuple(data["peak_activations"]) == timeline.peak_activations
        assert [(e["action"], e["start"]) for e in data["events"]] == [
            (str(e.action), e.start) for e in timeline.events]
