"""`distlearn schedule`, `schedules`, `validate`: numbers against the library, errors, files."""

import json
import re
from importlib.resources import files
from pathlib import Path

import jsonschema
import pytest

from distlearn.pipeline import NAMES, Costs, Schedule, build, simulate

RUN = ("schedule", "1f1b", "-p", 4, "-m", 8)


def numbers(output):
    """The table of numbers as {name: (simulated, formula)}."""
    rows = re.findall(r"^(\S.*?)  +([\d.e+-]+(?: %)?)  +([\d.e+-]+(?: %)?)(?:  |$)", output, re.M)
    return {name: (simulated, closed) for name, simulated, closed in rows}


def test_numbers_of_1f1b(cli):
    result = cli(*RUN)
    assert result.exit_code == 0
    table = numbers(result.output)
    assert table["makespan"] == ("33", "33")  # m(F+B) + (p-1)(F+B) = 24 + 9
    assert table["idle time of a rank"] == ("9", "9")
    assert table["bubble / makespan"] == ("27.27 %", "27.27 %")  # 3/11
    assert table["bubble / ideal"] == ("37.5 %", "37.5 %")  # (p-1)/m = 3/8
    assert "peak activations, rank 0..3: 4 3 2 1 (formula: the same)" in result.output


@pytest.mark.parametrize("name", NAMES)
def test_every_schedule_is_drawn_with_its_formula(cli, name):
    result = cli("schedule", name, "-p", 4, "-m", 8, *(("-v", 2) if "inter" in name else ()))
    assert result.exit_code == 0, result.output
    for simulated, closed in numbers(result.output).values():
        assert closed in (simulated, "-")
    assert " !" not in result.output


def test_where_no_formula_holds_it_says_why(cli):
    result = cli(*RUN, "--comm", "0.5")
    assert numbers(result.output)["makespan"][1] == "-"
    assert "No formula for the idle time here: the formula needs comm=0; got comm=0.5." \
        in result.output


def test_a_formula_that_differs_is_marked(cli, monkeypatch):
    from distlearn.cli import numbers as module

    monkeypatch.setattr(module, "bubble_time", lambda *a, **k: 8.0)
    monkeypatch.setattr(module, "peak_activations", lambda *a, r, **k: 4)
    result = cli(*RUN)
    assert re.search(r"^makespan +33 +32 !", result.output, re.M)
    assert "4 3 2 1\nformula: 4 4 4 4  ! differs from the simulation" in result.output


def test_longest_span_is_shown_where_it_differs(cli):
    assert "longest rank's span" not in cli(*RUN).output
    result = cli("schedule", "zb_h1", "-p", 4, "-m", 4, "-W", 3)
    timeline = simulate(build("zb_h1", 4, 4), Costs(W=3))
    if timeline.longest_span < timeline.makespan:
        assert f"{100 * timeline.span_bubble_fraction:.4g} %" in result.output


def test_costs_per_stage(cli):
    result = cli(*RUN, "-F", "1,2,1,1", "-B", 3)
    expected = simulate(build("1f1b", 4, 8), Costs(F=(1, 2, 1, 1), B=(3, 3, 3, 3)))
    assert numbers(result.output)["makespan"][0] == f"{expected.makespan:g}"


def test_json_equals_the_library_and_the_schema(cli, empty):
    result = cli("schedule", "zb_h1", "-p", 3, "-m", 5, "-I", "1.5", "--comm", "0.25", "--json")
    assert result.exit_code == 0
    data = json.loads(result.stdout)
    schema = json.loads(files("distlearn.cli").joinpath("timeline.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(data, schema)
    timeline = simulate(build("zb_h1", 3, 5), Costs(I=1.5, comm=0.25))
    for name in ("makespan", "ideal", "longest_span", "bubble_fraction", "bubble_over_ideal",
                 "span_bubble_fraction", "span_bubble_over_ideal"):
        assert data[name] == getattr(timeline, name)
    assert tuple(data["peak_activations"]) == timeline.peak_activations
    assert [(e["rank"], e["action"], e["start"], e["end"]) for e in data["events"]] \
        == [(e.rank, str(e.action), e.start, e.end) for e in timeline.events]
    assert data["formula"]["bubble_time"] is None
    assert data["costs"]["I"] == [1.5] * 3

    assert cli("schedule", "interleaved_1f1b", "-p", 2, "-m", 5, "-v", 2, "--group", 3,
               "--json", "out.json").exit_code == 0
    data = json.loads(Path("out.json").read_text())
    jsonschema.validate(data, schema)
    assert data["schedule"]["options"] == {"group": 3}


def test_json_may_stand_before_the_name(cli):
    assert json.loads(cli("schedule", "--json", "1f1b", "-p", 2, "-m", 2).stdout)["makespan"] == 9


def test_svg_is_the_figure_of_plots(cli, empty):
    from distlearn.plots import timeline_svg

    result = cli(*RUN, "--svg", "out.svg")
    assert result.exit_code == 0
    figure = timeline_svg(simulate(build("1f1b", 4, 8)))
    assert Path("out.svg").read_text().rstrip("\n") == figure
    assert "rank 0" in result.stdout and "SVG written to out.svg" in result.stderr
    assert cli(*RUN, "--svg").stdout.rstrip("\n") == figure
    assert sorted(path.name for path in empty.iterdir()) == ["out.svg"]  # no partial file left


def test_text_round_trip_through_validate(cli):
    text = cli(*RUN, "--text").stdout
    assert Schedule.from_text(text) == build("1f1b", 4, 8)
    result = cli("validate", "-", text=text)
    assert (result.exit_code, result.stdout) == (
        0, "valid: 1f1b, 4 ranks, 4 stages, 8 microbatches, 64 actions\n")


def test_validate_reads_what_windows_writes_and_nothing_endless(cli, empty):
    text = "schedule mine p=1 m=1 v=1\r\nplacement 0\r\nrank 0: F0.0 B0.0\r\n"
    (empty / "a.txt").write_bytes(text.encode("utf-8-sig"))
    assert cli("validate", "a.txt").exit_code == 0
    (empty / "a.txt").write_bytes(text.encode("utf-16"))
    result = cli("validate", "a.txt")
    assert result.exit_code == 2
    assert result.stderr == "error: a.txt is not text in UTF-8: byte 0 is 0xff\n"
    with (empty / "a.txt").open("wb") as stream:
        stream.truncate(2**28 + 1)
    result = cli("validate", "a.txt")
    assert (result.exit_code, result.stderr) == (2, "error: a.txt has more than 256 MiB\n")


@pytest.mark.parametrize(("old", "new", "message"), [
    ("B0.0 ", "", "B0.0 is missing"),
    ("B0.0 B0.1", "B0.0 B0.0", "B0.0 is done twice"),
    ("F0.0 ", "", "F0.0 is missing"),
    ("F1.0 B1.0", "B1.0 F1.0", "rank 1 waits in B1.0"),
])
def test_validate_says_what_is_wrong(cli, empty, old, new, message):
    text = build("gpipe", 2, 2).to_text().replace("F1.0 F1.1 B1.0", "F1.0 B1.0 F1.1")
    assert old in text
    Path("mine.txt").write_text(text.replace(old, new))
    result = cli("validate", "mine.txt")
    assert result.exit_code == 1
    assert message in result.stderr and result.stderr.startswith("error: gpipe is not valid: ")
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize(("arguments", "message"), [
    (("schedule",), "Missing argument 'NAME'"),
    (("schedule", "1f1b", "-m", 8), "Missing option '-p'"),
    ((*RUN[:2], "-p", 0, "-m", 8), "'-p': '0' is not a whole number >= 1"),
    ((*RUN[:2], "-p", "x", "-m", 8), "'-p': 'x' is not a whole number >= 1"),
    ((*RUN[:2], "-p", "4.0", "-m", 8), "'4.0' is not a whole number >= 1"),
    ((*RUN[:2], "-p", "-4", "-m", 8), "'-4' is not a whole number >= 1"),
    ((*RUN[:2], "-p", "1_0", "-m", 8), "'1_0' is not a whole number >= 1"),
    ((*RUN[:2], "-p", "", "-m", 8), "'' is not a whole number >= 1"),
    ((*RUN, "--comm", "-1"), "'--comm': '-1' is not a time"),
    ((*RUN, "--comm", "nan"), "'nan' is not a time"),
    ((*RUN, "-F", "inf"), "'-F': 'inf' is not a time"),
    ((*RUN, "-B", "1,,2"), "'1,,2' is not a time"),
    ((*RUN, "-W", "1e999"), "'1e999' is not a time"),
    ((*RUN, "-F", "1,2"), "costs give F for 2 stages; the schedule has 4"),
    ((*RUN, "--comm", "1,2"), "comm must be one number"),
    ((*RUN, "--width", "0"), "'--width': '0' is not a whole number >= 1"),
    ((*RUN, "--nope"), "No such option: --nope"),
    ((*RUN, "more"), "unexpected extra argument"),
    (("schedule", "1f2b", "-p", 4, "-m", 8), "no schedule is called '1f2b'; did you mean '1f1b'"),
    ((*RUN, "-v", 2), "v must be 1; got v=2"),
    ((*RUN, "--group", 4), "1f1b has no option 'group'"),
    (("schedule", "interleaved_1f1b", "-p", 4, "-m", 7, "-v", 2), "needs m % p == 0"),
    ((*RUN, "--svg", "no/such/x.svg"), "cannot write no/such/x.svg: there is no directory no/such"),
    ((*RUN, "--json", "."), "cannot write .: it is a directory"),
    ((*RUN, "--json", "--svg"), "--svg and --json cannot both go to stdout"),
    (("validate", "none.txt"), "none.txt: No such file or directory"),
    (("validate",), "Missing argument 'FILE'"),
    (("frobnicate",), "No such command 'frobnicate'"),
    (("schedul",), "Did you mean 'schedule'"),
])
def test_bad_input_is_one_line_and_code_2(cli, empty, arguments, message):
    result = cli(*arguments)
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stderr.startswith("error: ") and result.stderr.count("\n") == 1
    assert result.stdout == ""
    assert list(empty.iterdir()) == []


def test_not_a_schedule(cli):
    result = cli("validate", "-", text="hello\n")
    assert result.exit_code == 2
    assert "schedule text, line 1: 'hello'" in result.stderr


def test_schedules_lists_every_name_and_parameter(cli):
    result = cli("schedules")
    assert "slices: default 2." in result.stdout
    assert "<class" not in result.stdout
    assert result.exit_code == 0
    for name in NAMES:
        assert re.search(rf"^{name} ", result.output, re.M)
    assert "group:" in result.output and "policy: A (default), B." in result.output
    assert "costs:" not in result.output and "----" not in result.output
    one_line_each = re.sub(r"\n {30,}", " ", result.output)
    assert not re.search(r": *$", one_line_each, re.M)  # none is unexplained


def test_an_existing_file_survives_a_failure(cli, empty, monkeypatch):
    from distlearn.cli import schedule

    Path("out.svg").write_text("before")

    def full(self, *args, **kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(schedule.Path, "replace", full)
    result = cli(*RUN, "--svg", "out.svg")
    assert result.exit_code == 2
    assert "No space left on device" in result.stderr
    assert Path("out.svg").read_text() == "before"
    assert [path.name for path in empty.iterdir()] == ["out.svg"]


def test_a_link_is_written_through(cli, empty):
    Path("real.json").write_text("")
    Path("link.json").symlink_to("real.json")
    assert cli(*RUN, "--json", "link.json").exit_code == 0
    assert Path("link.json").is_symlink()
    assert json.loads(Path("real.json").read_text())["makespan"] == 33
