"""What a launch is counted in, per line of the source and in total.

A *dynamic instruction* of a warp is the lanes that execute the same source access with the same
iteration numbers of all enclosing loops (structured reconvergence). It is one request, however
many lanes take part.

================================ ===============================================================
global_load/store_requests       dynamic instructions of warps on arrays of the launch
global_load/store_sectors        distinct 32-byte sectors of each request, summed; no cache
global_load/store_lines          the same with 128-byte lines
shared_load/store_requests       dynamic instructions of warps on shared arrays
shared_load/store_wavefronts     per request the most distinct 4-byte words in one of 32 banks
branches                         evaluations of an ``if`` or ``while`` test, one a warp
divergent_branches               those in which active lanes disagree
barrier_warps                    warps that arrive at barriers
atomic_requests                  dynamic instructions of warps that are atomics
atomic_conflicts                 per such request, lanes on the most wanted word, less one
flops                            floating-point operations of lanes: + - * / and math functions
tensor_flops                     those of warps' matrix-multiply-accumulates, apart from ``flops``
================================ ===============================================================
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

NAMES = (
    "global_load_requests", "global_load_sectors", "global_load_lines",
    "global_store_requests", "global_store_sectors", "global_store_lines",
    "shared_load_requests", "shared_load_wavefronts",
    "shared_store_requests", "shared_store_wavefronts",
    "branches", "divergent_branches", "barrier_warps",
    "atomic_requests", "atomic_conflicts", "flops", "tensor_flops",
)
INDEX = {name: position for position, name in enumerate(NAMES)}

# Nsight Compute's names of the same quantities, or of the nearest that it has.
NSIGHT = {
    "global_load_requests": "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum",
    "global_load_sectors": "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
    "global_store_requests": "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum",
    "global_store_sectors": "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum",
    "shared_load_requests": "smsp__inst_executed_op_shared_ld.sum",
    "shared_store_requests": "smsp__inst_executed_op_shared_st.sum",
    "shared_load_wavefronts": "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum",
    "shared_store_wavefronts": "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum",
    # Compiled code branches elsewhere: it predicates short ifs and unrolls loops.
    "branches": "smsp__sass_branch_targets.sum",
    "divergent_branches": "smsp__sass_branch_targets_threads_divergent.sum",
    "atomic_requests": "smsp__sass_inst_executed_op_global_atom.sum",
    "flops": "smsp__sass_thread_inst_executed_op_fadd_pred_on.sum + _fmul_ + 2 x _ffma_",
    "tensor_flops": "sm__ops_path_tensor_src_fp16_dst_fp32.sum",
}

WARP = 32
BUSY = "busy_"  # and how many warps


@dataclass
class Flow:
    """How the work of a launch lies in time, for the time model; sums over all blocks.

    An *interval* is what lies between a block's barriers.

    Attributes
    ----------
    exposed : float
        Intervals at whose end the block waits for global memory.
    hidden : float
        Intervals in which it works meanwhile: shared memory is read after the loads and written
        after that (then they were for later), or other warps than those that load work longest.
    last_loads : float
        Loads of warps, of global memory, after the last barrier.
    busy : dict of int to float
        Warps of a block that work at the same time (all instructions of an interval over those of
        the warp that has most) -> instructions of warps in such intervals.
    """

    exposed: float = 0.0
    hidden: float = 0.0
    last_loads: float = 0.0
    busy: dict[int, float] = field(default_factory=dict)

    def figures(self) -> dict[str, float]:
        """All of it as numbers by name."""
        return {"exposed": self.exposed, "hidden": self.hidden, "last_loads": self.last_loads,
                **{f"{BUSY}{warps}": work for warps, work in self.busy.items()}}


class Tally:
    """Counters per source line; executors add to the row of a line in place."""

    def __init__(self) -> None:
        self.rows: dict[int, list[int]] = {}

    def row(self, line: int) -> list[int]:
        """The counters of ``line``, in the order of `NAMES`, made at the first call."""
        row = self.rows.get(line)
        if row is None:
            row = self.rows[line] = [0] * len(NAMES)
        return row

    def freeze(self) -> Counters:
        """What has been counted so far."""
        rows = {line: tuple(row) for line, row in sorted(self.rows.items()) if any(row)}
        return Counters(rows)


class Counters(Mapping[str, int]):
    """Totals by name; ``by_line`` has the same per line of the source file.

    Two are equal if their totals are and, line by line, their parts.
    """

    def __init__(self, rows: Mapping[int, tuple[int, ...]]) -> None:
        self._rows = dict(rows)
        self._totals = tuple(map(sum, zip(*rows.values(), strict=True))) or (0,) * len(NAMES)

    @property
    def by_line(self) -> dict[int, dict[str, int]]:
        """Line number -> name -> count, without zeros."""
        return {line: {name: n for name, n in zip(NAMES, row, strict=True) if n}
                for line, row in self._rows.items()}

    def __getitem__(self, name: str) -> int:
        try:
            return self._totals[INDEX[name]]
        except KeyError:
            raise KeyError(f"no counter is called {name!r}; counters are {', '.join(NAMES)}"
                           ) from None

    def __iter__(self) -> Iterator[str]:
        return iter(NAMES)

    def __len__(self) -> int:
        return len(NAMES)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Counters) and self._rows == other._rows

    def __hash__(self) -> int:
        return hash(tuple(self._rows.items()))

    def __repr__(self) -> str:
        return f"Counters({ {name: n for name, n in self.items() if n} })"
