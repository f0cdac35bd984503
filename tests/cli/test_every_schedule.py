"""`distlearn schedule` with every schedule, every output and every kind of option."""

import json

import pytest

from distlearn.pipeline import NAMES, Costs, Schedule, build, simulate

SIZES = {"v_auto": ("-p", "3", "-m", "6"), "dualpipe": ("-p", "4", "-m", "8")}
OPTIONS = [
    ("1f1b", "overlap=true", {"overlap": True}), ("dapple", "policy=B", {"policy": "B"}),
    ("dapple", "mem_limit=2", {"mem_limit": 2}),
    ("interleaved_1f1b", "group=5", {"group": 5}), ("chimera", "directions=4", {"directions": 4}),
    ("chimera", "method=backward_halving", {"method": "backward_halving"}),
    ("hanayo", "waves=2", {"waves": 2}), ("hanayo", "window=3", {"window": 3}),
    ("zb_auto", "mem_limit=2.5", {"mem_limit": 2.5}), ("zb_1p", "after_I=0.25", {"after_I": 0.25}),
    ("zb_v", "method=heuristic", {"method": "heuristic"}), ("v_auto", "mem_limit=6",
                                                            {"mem_limit": 6}),
    ("gis", "offload=1", {"offload": 1}), ("gis", "group=none", {"group": None}),
    ("seq1f1b", "slices=3", {"slices": 3}), ("terapipe", "slices=3", {"slices": 3}),
    ("pipedream", "vertical_sync=TRUE", {"vertical_sync": True}),
    ("pipedream_2bw", "batches=2", {"batches": 2}), ("amdp", "batches=1", {"batches": 1}),
    ("mario", "base=gpipe", {"base": "gpipe"}), ("mario", "prepose=false", {"prepose": False}),
]


@pytest.mark.parametrize("name", NAMES)
def test_every_schedule_in_every_output(cli, name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    sizes = SIZES.get(name, ("-p", "4", "-m", "8"))
    drawn = cli("schedule", name, *sizes, "--svg", "it.svg", "--json", "it.json")
    assert drawn.exit_code == 0, drawn.stderr
    assert "makespan" in drawn.stdout and " !" not in drawn.stdout  # no formula that is wrong
    assert (tmp_path / "it.svg").read_text().startswith("<svg")
    events = json.loads((tmp_path / "it.json").read_text())
    text = cli("schedule", name, *sizes, "--text", "-F", "1.25", "-I", "1", "-W", "0.5")
    made = Schedule.from_text(text.stdout)
    assert events["schedule"]["name"] == made.name == name


@pytest.mark.parametrize(("name", "word", "options"), OPTIONS)
def test_every_option(cli, name, word, options, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = cli("schedule", name, "-p", "4", "-m", "8", "-o", word, "--svg", "it.svg", "--json",
                 "it.json")
    assert result.exit_code == 0, result.stderr
    assert " !" not in result.stdout
    assert json.loads((tmp_path / "it.json").read_text())["schedule"]["options"] == options
    text = cli("schedule", name, "-p", "4", "-m", "8", "--option", word, "--text").stdout
    assert Schedule.from_text(text) == build(name, 4, 8, **options)


def test_times_reach_a_search(cli):
    """An order made for measured times, not for the default ones."""
    words = ("schedule", "zb_2p", "-p", "4", "-m", "12", "--text")
    assert cli(*words).stdout != cli(*words, "-F", "3", "-I", "1", "-W", "1").stdout


@pytest.mark.parametrize(("words", "message"), [
    (("1f1b", "-o", "slices=2"), "1f1b has no option 'slices'; its options: overlap"),
    (("1f1b", "-o", "overlap=3"), "1f1b needs overlap to be True or False; got 3"),
    (("seq1f1b", "-o", "slices=x"), "seq1f1b needs slices to be an integer; got 'x'"),
    (("seq1f1b", "-o", "slices=0"), "seq1f1b needs slices >= 1; got slices=0"),
    (("seq1f1b", "-o", "slices=2", "-o", "slices=3"), "option slices is given twice"),
    (("gis", "--group", "4", "-o", "group=3"), "option group is given twice"),
    (("1f1b", "-o", "p=3"), "option p has a flag of its own"),
    (("1f1b", "-o", "costs=3"), "option costs has a flag of its own"),
    (("1f1b", "-o", "overlap"), "'overlap' is not NAME=VALUE, such as slices=2"),
    (("1f1b", "-o", "=1"), "'=1' is not NAME=VALUE"),
    (("zb_1p", "-o", "mem_limit=0.5"), "zb_1p needs mem_limit >= 1 activation; got mem_limit=0.5"),
    (("dualpipe", "-v", "2"), "dualpipe has one stage per rank, so v must be 1; got v=2"),
])
def test_what_is_wrong_with_an_option_is_said(cli, words, message):
    result = cli("schedule", *words, "-p", "4", "-m", "8")
    assert result.exit_code == 2
    assert message in " ".join(result.stderr.split())
    assert "Traceback" not in result.stderr


def test_an_order_made_for_other_times(cli):
    """Run with one set of times what was made for another."""
    words = ("schedule", "zb_2p", "-p", 4, "-m", 12, "-F", "9/3", "-I", "1", "-W", "2/2")
    data = json.loads(cli(*words, "--made-for", "F=1,I=1,W=1,comm=1/4", "--json").stdout)
    run = Costs(F=3, I=1, W=1)
    expected = simulate(build("zb_2p", 4, 12, costs=Costs(F=1, I=1, W=1, comm=0.25)), run)
    assert data["makespan"] == expected.makespan
    assert [(e["action"], e["start"]) for e in data["events"]] == [
        (str(e.action), e.start) for e in expected.events]
    assert data["events"] != json.loads(cli(*words, "--json").stdout)["events"]
    assert data["schedule"]["options"] == {"costs": {"F": 1, "I": 1, "W": 1, "comm": 0.25}}
    assert "No formula for the idle time here: the order was made for other times" in cli(
        *words, "--made-for", "F=1,I=1,W=1").stdout


@pytest.mark.parametrize(("words", "message"), [
    (("1f1b", "--made-for", "F=2"), "the order of 1f1b does not depend on times"),
    (("zb_1p", "--made-for", "F"), "'F' is not a time by name"),
    (("zb_1p", "--made-for", "F=1,G=2"), "'G=2' is not a time by name"),
    (("zb_1p", "--made-for", "F=1,F=2"), "F is given twice in 'F=1,F=2'"),
    (("zb_1p", "--made-for", "F=-1"), "'F=-1' is not a time by name"),
    (("zb_1p", "-F", "1/0"), "'1/0' is not a time"),
    (("zb_1p", "-F", "1/-2"), "'1/-2' is not a time"),
    (("zb_1p", "-F", "1/2/3"), "'1/2/3' is not a time"),
])
def test_what_is_wrong_with_a_time_is_said(cli, words, message):
    result = cli("schedule", *words, "-p", "4", "-m", "8")
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in " ".join(result.stderr.split())
