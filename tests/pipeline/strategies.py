"""Random schedules: any name, sizes up to p 12, m 40, v 4, and the options that a schedule has."""

from __future__ import annotations

from typing import Any, NamedTuple

from hypothesis import strategies as st

from distlearn.pipeline import NAMES, Schedule, build

TIMES = st.integers(1, 40).map(lambda quarter: quarter / 4)  # exact in binary: sums compare equal
ANY_TIMES = ("zb_1p", "zb_2p", "zb_auto")  # searches
VARIED_V = ("interleaved_1f1b", "breadth_first", "interleaved_zero_bubble", "gis", "gis_h")
OPTIONS: dict[str, dict[str, st.SearchStrategy[Any]]] = {
    "1f1b": {"overlap": st.booleans()},
    "dapple": {"policy": st.sampled_from("AB"), "mem_limit": st.none() | st.integers(1, 12)},
    "interleaved_1f1b": {"overlap": st.booleans(), "group": st.none() | st.integers(1, 24)},
    "chimera": {
        "directions": st.sampled_from((2, 4, 6, 8)),
        "method": st.sampled_from(("direct", "forward_doubling", "backward_halving")),
    },
    "hanayo": {"waves": st.integers(1, 2)},
    "interleaved_zero_bubble": {"group": st.none() | st.integers(1, 24)},
    "zb_v": {"method": st.sampled_from(("handcrafted", "heuristic"))},
    "gis": {"group": st.none() | st.integers(1, 12), "offload": st.integers(0, 4)},
    "gis_h": {"group": st.none() | st.integers(1, 12), "offload": st.integers(0, 4)},
    "seq1f1b": {"slices": st.integers(1, 4)},
    "terapipe": {"slices": st.integers(1, 4)},
    "pipedream": {"vertical_sync": st.booleans()},
    "pipedream_2bw": {"batches": st.integers(1, 3)},
    "xpipe": {"batches": st.integers(1, 3)},
    "amdp": {"batches": st.integers(1, 3)},
    "mario": {"base": st.sampled_from(("1f1b", "gpipe", "zb_h1", "chimera", "dualpipe", "seq1f1b")),
              "prepose": st.booleans()},
}
SLOW = {"v_auto": (3, 8), "mario": (4, 16)}  # name: largest p, m tried


class Case(NamedTuple):
    """What `build` is asked for."""

    name: str
    p: int
    m: int
    v: int | None
    options: dict[str, Any]

    def build(self) -> Schedule:
        return build(self.name, self.p, self.m, self.v, **self.options)


@st.composite
def cases(draw: st.DrawFn, names: tuple[str, ...] = NAMES, likely: bool = True) -> Case:
    """Anything that `build` may be asked for; ``likely`` to be accepted, by rounding the sizes."""
    name = draw(st.sampled_from(names))
    most = SLOW.get(name, (12, 40))
    p, m = draw(st.integers(1, most[0])), draw(st.integers(1, most[1]))
    v = draw(st.integers(1, 4)) if name in VARIED_V else None
    options = {key: draw(value) for key, value in OPTIONS.get(name, {}).items()}
    if likely and draw(st.booleans()):
        if {name, options.get("base")} & {"chimera", "dualpipe", "amdp"}:
            unit = options.get("directions", 4 if name == "amdp" else 2)
            p = unit * max(1, p // unit)
        if name in ("chimera", "amdp"):
            m = max(1, m // (2 * p)) * 2 * p
        elif name == "dualpipe" or options.get("base") == "dualpipe":
            m = max(2 * p, m // 2 * 2)
        elif name == "dualpipe_v":
            m = max(2 * p, m)
        elif options.get("base") == "chimera":
            m += m % 2
        elif name in VARIED_V:
            group = options.get("group") or (p + 1) // 2 if name == "gis_h" else p
            options.pop("group", None)
            m = group * max(1, m // group)
        options.pop("offload", None)
        if options.get("directions", 2) > 2:
            options.pop("method", None)
    return Case(name, p, m, v, options)
