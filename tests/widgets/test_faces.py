"""The two faces of the explorer: the live one follows its controls, the static one stands alone."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from types import SimpleNamespace
from typing import Any

import pytest

from distlearn.pipeline import build
from distlearn.widgets import PipelineExplorer, face
from distlearn.widgets.face import Face
from distlearn.widgets.pipeline_explorer import SCHEDULES

VOID = {"input", "meta", "br", "img", "rect", "path"}


class Reader(HTMLParser):
    """Checks that elements close in order; collects ids and the text of scripts."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.ids: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.data: dict[str, str] = {}
        self.roots = 0
        self.feed(text)
        self.close()
        assert not self.open, f"never closed: {self.open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.roots += not self.open
        names = [name for name, _ in attrs]
        assert len(names) == len(set(names)), f"an attribute twice in {tag} {attrs}"
        self.ids += [str(value) for name, value in attrs if name == "id"]
        self.attributes += [(tag, name, str(value)) for name, value in attrs]
        if tag not in {"input"}:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if self.open and self.open[-1] == tag:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open and self.open.pop() == tag, f"{tag} closes out of order"

    def handle_data(self, data: str) -> None:
        if self.open:
            self.data[self.open[-1]] = self.data.get(self.open[-1], "") + data


def page_explorer(*arguments: Any, **options: Any) -> PipelineExplorer:
    """One with few schedules, whose orders take little time; test_javascript_twin.py has all."""
    return PipelineExplorer(*arguments, **options, schedules=SCHEDULES)


def control(explorer: PipelineExplorer, words: str) -> Any:
    return next(c for c in explorer.children[0].children if c.description.startswith(words))


def shown(explorer: PipelineExplorer) -> str:
    return str(explorer.children[1].value)


def test_two_explorers_on_one_page() -> None:
    texts = [page_explorer().static_html(), page_explorer("zb_h1", 2, 3).static_html()]
    read = [Reader(text) for text in texts]
    ids = [ident for one in read for ident in one.ids]
    assert len(ids) == len(set(ids)) == 4
    for one, text in zip(read, texts, strict=True):
        assert one.roots == 1
        assert text.replace('xmlns="http://www.w3.org/2000/svg"', "").count("http") == text.count(
            '"http://www.w3.org/2000/svg", "rect"')
        assert not [a for a in one.attributes if a[1] in ("src", "href") or a[1].startswith("on")]
        referred = {value for _, name, value in one.attributes if name.startswith("aria-describ")}
        assert referred <= set(one.ids)


def test_page_is_the_same_each_time() -> None:
    texts = [re.sub(r"dl-\d+", "dl-N", page_explorer().static_html()) for _ in range(2)]
    assert texts[0] == texts[1]


def test_scripts_leave_no_globals_and_end_where_they_should() -> None:
    text = page_explorer().static_html()
    scripts = re.findall(r"<script>(.*?)</script>", text, flags=re.DOTALL)
    assert len(scripts) == 1
    assert scripts[0].startswith("(function () {") and scripts[0].endswith("})();")
    data = re.search(r'<script type="application/json">(.*?)</script>', text, flags=re.DOTALL)
    assert data is not None
    assert "<" not in data[1]
    assert json.loads(data[1])["formulas"]["1f1b"] == "(p-1)(F+B)"


def test_every_control_has_a_name() -> None:
    text = page_explorer().static_html()
    labels = re.findall(r'<label class="dl-control"><span><b>(\w+)</b>.*?</label>', text)
    assert labels == [
        "schedule", "option", "p", "m", "v", "limit", "F", "B", "W", "comm", "zoom"]
    assert text.count("<input") + text.count("<select") == len(labels)


def test_first_state_is_there_without_javascript() -> None:
    text = page_explorer("interleaved_1f1b", 4, 8, 2).static_html()
    for seen in ("<title>F0.0 on rank 0: 0 to 0.5</title>", "15.8 %", "18.8 %", "28.5",
                 "5.5, 4.5, 3.5, 2.5", "<b>rank 3</b> F3.0 (1.5 to 2), ",
                 'build("interleaved_1f1b", p=4, m=8, v=2), Costs(F=1/2, B=2/2)',
                 "distlearn schedule interleaved_1f1b -p 4 -m 8 -v 2 -F 1/2 -B 2/2<",
                 "the closed formula (p-1)(F+B)/v gives 4.5", "The controls need JavaScript"):
        assert seen in text


def test_a_notebook_gets_both_faces() -> None:
    bundle = page_explorer()._repr_mimebundle_()
    assert set(bundle) == {
        "text/plain", "text/html", "application/vnd.jupyter.widget-view+json"}
    assert bundle["text/html"].startswith('<div class="dl-face"')


def test_a_notebook_being_worked_in_gets_a_picture(monkeypatch: pytest.MonkeyPatch) -> None:
    """JupyterLab names the cell in its request; nbclient, which makes the book, does not."""
    kernel = SimpleNamespace(get_parent=lambda: {"metadata": {"cellId": "2433ad4e"}})
    monkeypatch.setattr(face, "get_ipython", lambda: SimpleNamespace(kernel=kernel))
    text = page_explorer()._repr_mimebundle_()["text/html"]
    assert "<svg" in text and "27.3 %" in text and "<script" not in text
    assert len(text) < 30_000
    Reader(f"<div>{text}</div>")
    kernel.get_parent = lambda: {"metadata": {}}
    assert "<script" in page_explorer()._repr_mimebundle_()["text/html"]


def test_live_face_follows_its_controls() -> None:
    explorer = PipelineExplorer()
    assert "27.3 %" in shown(explorer)
    control(explorer, "m").value = 16
    assert "15.8 %" in shown(explorer)  # 9 / (48 + 9)
    control(explorer, "comm").value = 0.5
    assert "does not apply: the formula needs comm=0; got comm=0.5" in shown(explorer)
    control(explorer, "schedule").value = "zb_h1"
    control(explorer, "comm").value = 0
    assert "the closed formula (p-1)(F+I) - (min(m,p)-1)W gives 3" in shown(explorer)
    assert "1F1B with free transfers would idle (p-1)(F+B) = 9." in shown(explorer)
    control(explorer, "W").value = 0.5
    assert explorer.view.call == (
        'simulate(build("zb_h1", p=4, m=16), Costs(F=1, B=2, W=0.5))')
    picture = explorer.view.picture
    control(explorer, "zoom").value = 2
    assert len(explorer.view.picture) > len(picture)


def test_live_face_shows_what_is_refused() -> None:
    explorer = PipelineExplorer("interleaved_1f1b")
    control(explorer, "m").value = 9
    with pytest.raises(ValueError) as error:
        build("interleaved_1f1b", 4, 9, 2)
    assert explorer.view.message == str(error.value)
    assert str(error.value) in shown(explorer)
    assert "<svg" not in shown(explorer)
    control(explorer, "schedule").value = "zb_h1"
    control(explorer, "B").value = 0.5
    assert "I = B - W must be &gt;= 0; got B=0.5 W=1.0" in shown(explorer)
    control(explorer, "schedule").value = "1f1b"  # does not split B: W plays no part
    assert "<svg" in shown(explorer)


def test_controls_that_play_no_part_are_off() -> None:
    explorer = PipelineExplorer("1f1b", v=3)
    assert control(explorer, "v").disabled and control(explorer, "W").disabled
    assert explorer.setting.v == 1 and explorer.setting.W is None
    control(explorer, "schedule").value = "interleaved_1f1b"
    assert not control(explorer, "v").disabled
    assert explorer.setting.v == 3
    control(explorer, "schedule").value = "zb_h1"
    assert not control(explorer, "W").disabled
    assert explorer.setting.W == 1


def test_orders_are_filled_when_opened() -> None:
    explorer = PipelineExplorer(m=2, p=2)
    details = explorer.children[2]
    assert details.children[0].value == ""
    details.selected_index = 0
    assert "<b>rank 1</b> F1.0 (1 to 2), B1.0 (2 to 4)" in details.children[0].value


def test_first_setting_is_taken_as_given() -> None:
    explorer = page_explorer(
        "zb_h1", 2, 3, F=12.125, I=0.001, W=7, comm=5, max_p=2, max_m=40)
    setting = explorer.setting
    assert (setting.F, setting.B, setting.W, setting.comm) == (12.125, 7.001, 7, 5)
    assert 'name="F" min="0.0" max="16.0" step="0.001" value="12.125"' in explorer.static_html()
    assert control(explorer, "m").max == 40


@pytest.mark.parametrize(("arguments", "message"), [
    ({"p": 9}, r"shows p from 1 to 8 \(max_p\); got p=9"),
    ({"m": 0}, r"shows m from 1 to 32 \(max_m\); got m=0"),
    ({"v": 1.5}, r"shows v from 1 to 4 \(max_v\); got v=1.5"),
    ({"F": -1}, "F=-1"),
    ({"max_p": "8"}, "max_p must be an integer from 1 to 64; got '8'"),
    ({"max_v": 40}, "max_v must be an integer from 1 to 27; got 40"),
    ({"max_m": 0}, "max_m must be an integer from 1 to 512; got 0"),
    ({"B": 1, "W": 2}, "I = B - W must be >= 0"),
    ({"F": [1, 2]}, "equal stages"),
    ({"schedule": "1f2b"}, "did you mean '1f1b'"),
    ({"schedule": "gpipe", "schedules": ["1f1b"]}, "one of 1f1b; got 'gpipe'"),
    ({"limit": 0.3}, "limit must be a multiple of 0.5"),
])
def test_first_setting_out_of_range_is_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        PipelineExplorer(**arguments)


def test_a_new_view_needs_only_its_parts() -> None:
    class Hello(Face):
        label, scripts, mount = "Hello <world>", (), "(function () {})"

        def static_body(self, ident: str) -> str:
            return f'<p id="{ident}-p">hello</p>'

        def static_data(self) -> Any:
            return "</script>"

    text = Hello([]).static_html()
    read = Reader(text)
    assert read.roots == 1
    assert 'aria-label="Hello &lt;world&gt;"' in text
    assert "</script>" not in read.data["script"]
