"""The book's sources: what is vendored is what it says it is, and every chapter is in order."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Any

import jupytext
import numpy as np
import pytest
import yaml

from distlearn.grading import Question, questions
from distlearn.pipeline import build

ROOT = Path(__file__).parents[2]
BOOK = ROOT / "book"
ASSETS = BOOK / "assets"
PAGES = sorted(path for path in BOOK.glob("*.md"))
CHAPTERS = [path for path in PAGES if "kernelspec:" in path.read_text()]
VENDORED: dict[str, dict[str, str]] = json.loads((ASSETS / "vendored.json").read_text())


def _cells(path: Path) -> list[Any]:
    return [cell for cell in jupytext.read(path).cells if cell.cell_type == "code"]


@pytest.mark.parametrize("name", VENDORED)
def test_vendored_file_is_the_published_one(name: str) -> None:
    record = VENDORED[name]
    assert hashlib.sha256((ASSETS / name).read_bytes()).hexdigest() == record["sha256"]
    assert record["version"] and record["source"] and record["license"]
    assert len((ASSETS / record["license_file"]).read_text()) > 500


def test_every_script_that_is_not_ours_is_listed_as_vendored() -> None:
    scripts = {str(path.relative_to(ASSETS)) for path in ASSETS.rglob("*.js")} - {"book.js"}
    assert scripts == set(VENDORED)


def test_mathjax_is_the_version_it_is_listed_as() -> None:
    text = (ASSETS / "mathjax/tex-svg.js").read_text()
    assert f'"{VENDORED["mathjax/tex-svg.js"]["version"]}"' in text


def test_every_page_is_in_the_table_of_contents() -> None:
    toc = yaml.safe_load((BOOK / "_toc.yml").read_text())
    listed = [toc["root"], *(name for part in toc["parts"] for name in _files(part["chapters"]))]
    assert sorted(listed) == sorted(path.stem for path in PAGES)


def _files(entries: list[dict[str, Any]]) -> list[str]:
    """Pages of the table of contents, those below other pages too."""
    return [name for entry in entries
            for name in (entry["file"], *_files(entry.get("sections", [])))]


def test_every_citation_has_a_reference_and_every_reference_can_be_found() -> None:
    text = (BOOK / "references.bib").read_text()
    entries = {m[1]: m[0] for m in re.finditer(r"@\w+\{(\w+),.*?\n\}", text, re.DOTALL)}
    cited = {
        key.strip()
        for path in PAGES
        for keys in re.findall(r"\{cite[a-z:]*\}`([^`]+)`", path.read_text())
        for key in keys.split(",")
    }
    assert cited and cited <= entries.keys()
    for key, entry in entries.items():
        assert re.search(r"^  (doi|eprint|url) = \{[^{}\s]+\}", entry, re.MULTILINE), key


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_every_figure_has_a_name_a_caption_and_a_text_alternative(path: Path) -> None:
    figures = [cell.metadata.mystnb for cell in _cells(path) if "mystnb" in cell.metadata]
    for figure in figures:
        assert figure["figure"]["name"].startswith("fig-")
        assert len(figure["figure"]["caption"]) > 30
        assert len(figure["image"]["alt"]) > 60
    drawing = [c for c in _cells(path) if re.search(r"^(plots\.|plt\.show)", c.source, re.M)]
    assert len(drawing) == len(figures)


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_code_fits_the_column(path: Path) -> None:
    wide = [line for cell in _cells(path) for line in cell.source.splitlines() if len(line) > 84]
    assert not [line for line in wide if not line.lstrip().startswith(('f"', '"'))]


@pytest.fixture(scope="module")
def train() -> Any:
    """The function ``train`` of the pipeline chapter, as the reader sees it."""
    namespace: dict[str, Any] = {}
    cells = _cells(BOOK / "pipeline.md")
    imports = next(cell.source for cell in cells if "import numpy" in cell.source)
    exec("\n".join(line for line in imports.splitlines() if line[:1] != "%"), namespace)
    exec(next(cell.source for cell in cells if "def train(" in cell.source), namespace)
    return namespace["train"]


RECORDS = json.loads((ROOT / "tests/data/schedules/PipeDream.json").read_text())


@pytest.mark.parametrize("record", [r for r in RECORDS if "numeric" in r],
                         ids=lambda r: f"p{r['p']}-m{r['m']}")
def test_the_chapters_training_equals_pipedreams_own_code(
    train: Any, record: dict[str, Any]
) -> None:
    """Losses and weights of PipeDream's weight-stashing optimizer, run by its authors' code."""
    numeric = record["numeric"]
    batches = [(np.array(x), np.array(y))
               for x, y in zip(numeric["X"], numeric["Y"], strict=True)]
    schedule = build("pipedream", p=record["p"], m=record["m"])
    start = [np.array(w) for w in numeric["W0"]]
    losses, history, _ = train(schedule, batches, start, numeric["lr"], skip=0.0)
    np.testing.assert_allclose(losses, numeric["losses"], rtol=1e-12)
    for versions, wanted in zip(history, numeric["W_final"], strict=True):
        np.testing.assert_allclose(versions[-1], np.array(wanted), rtol=1e-12)
    if record["m"] > record["p"] > 2:  # with two stages no backward passes through old weights
        other, _, _ = train(schedule, batches, start, numeric["lr"], stash=False, skip=0.0)
        assert not np.allclose(other, numeric["losses"], rtol=1e-9)


def test_the_ptx_that_the_book_quotes_is_what_numba_makes() -> None:
    """Instruction by instruction; the numbers of registers are the compiler's own affair."""
    pytest.importorskip("numba.cuda", reason="numba-cuda is not installed: extra distlearn[cuda]")
    from distlearn.kernels import GEMM, numba_cuda

    page = (BOOK / "gpu-gemm.md").read_text()
    quoted = re.search(r"```text\n(st\.shared.*?)```", page, re.DOTALL)
    one, matrix = np.float32(1), np.zeros((64, 64), np.float32)
    made = numba_cuda.ptx(GEMM["shared_tiled"], (matrix, matrix, matrix, one, one), "9.0")
    wanted, text = (" ".join(re.sub(r"%(r|rd|f)\d+", r"%\1", part).split())
                    for part in (quoted[1] if quoted else "", made))
    assert wanted and wanted in text


@pytest.mark.parametrize("question", questions("gpu"), ids=lambda question: question.id)
def test_every_question_on_gpus_has_one_box_in_the_text(question: Question) -> None:
    boxes = [box for path in BOOK.glob("*.md") for box in re.findall(
        r"```\{admonition\} Graded questions?\n.*?```", path.read_text(), re.DOTALL)]
    found = [box for box in boxes if f"*{question.title}*" in box]
    assert len(found) == 1 and f"gpu_{question.sheet}.ipynb" in found[0]


def test_every_package_is_among_the_public_calls() -> None:
    shown = re.findall(r"^```\{public-calls\} (\S+)$", (BOOK / "calls.md").read_text(), re.M)
    packages = {path.parent for path in (ROOT / "distlearn").glob("*/__init__.py")
                if "__all__" in path.read_text()}
    assert {f"distlearn.{path.name}" for path in packages} <= set(shown)
