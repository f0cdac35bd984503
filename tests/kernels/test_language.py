"""What kernels may say beyond scalars: vector loads, fragments, slices, narrow floats.

Every kernel runs in both executors: same counters, and results against numpy.
"""

import textwrap

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from distlearn.hardware.memory_system import global_access, shared_access
from distlearn.kernels import KernelError, kernels_from_text, launch


def run(text, grid, block, *arguments, shared_bytes=0):
    """Both executors; gives the arguments after the run and the counters."""
    kernel = kernels_from_text(textwrap.dedent(text))["f"]
    results = []
    for executor in ("simt", "oracle"):
        own = [a.copy() if isinstance(a, np.ndarray) else a for a in arguments]
        report = launch(kernel, grid, block, *own, executor=executor, shared_bytes=shared_bytes)
        results.append((own, report.counters))
    (fast, counters), (slow, expected) = results
    for a, b in zip(fast, slow, strict=True):
        np.testing.assert_array_equal(a, b)
    assert counters.by_line == expected.by_line
    return fast, counters


def error(text, grid, block, *arguments, shared_bytes=0):
    """The error that both executors come to."""
    kernel = kernels_from_text(textwrap.dedent(text))["f"]
    found = []
    for executor in ("simt", "oracle"):
        with pytest.raises(KernelError) as caught:
            launch(kernel, grid, block, *(a.copy() for a in arguments), executor=executor,
                   shared_bytes=shared_bytes)
        found.append((caught.value.kind, caught.value.line))
    assert found[0] == found[1]
    return found[0]


@settings(max_examples=25, deadline=None, derandomize=True)
@given(st.sampled_from([1, 2, 3, 5]), st.integers(0, 6), st.integers(1, 64),
       st.sampled_from([2, 4]))
def test_vector_loads_cost_what_their_addresses_say(stride, first, limit, width):
    text = f"""
        def f(out, a, n):
            s = cuda.shared.array(1400, float32)
            t = cuda.threadIdx.x
            if t < n:
                v = load{width}(a, {width} * (t * {stride} + {first}))
                store{width}(s, {width} * (t * {stride} + {first}), v)
                w = load{width}(s, {width} * (t * {stride} + {first}))
                out[t] = w.x + w.y
        """
    a, lanes = np.arange(1400, dtype=np.float32), np.arange(64).reshape(2, 32)
    (out, _, _), counters = run(text, 1, 64, np.zeros(64, np.float32), a, limit)
    index = width * (lanes * stride + first)
    np.testing.assert_array_equal(out, np.where(lanes < limit, a[index] + a[index + 1], 0).ravel())
    on = lanes < limit
    expected = global_access(4 * index, 4 * width, on)
    assert counters["global_load_sectors"] == expected.sectors.sum()
    assert counters["global_load_lines"] == expected.lines.sum()
    turns = shared_access(4 * index, 4 * width, on).wavefronts.sum()
    assert counters["shared_load_wavefronts"] == counters["shared_store_wavefronts"] == turns


def test_vector_types():
    text = """
        def f(out, a):
            i = cuda.threadIdx.x
            v = cuda.float32x4(a[i], 1, 2.5, i)
            if i > 3:
                v = cuda.float4(v.w, v.z, cuda.float32x2(v.y, v.x))
            store4(out, (i, 0), v)
        """
    a = np.arange(8, dtype=np.float32)
    (out, _), _ = run(text, 1, 8, np.zeros((8, 4), np.float32), a)
    assert out[3].tolist() == [3, 1, 2.5, 3]
    assert out[5].tolist() == [5, 2.5, 1, 5]


@pytest.mark.parametrize(("body", "kind"), [
    ("out[0] = load4(a, t % 8 * 4 + 1).x", "misaligned_address"),
    ("out[0] = load4(a, t * 4 + 60).x", "out_of_bounds"),
    ("store4(a, 4 * (t // 2), cuda.float4(0, 0, 0, 0))", "global_race"),
    ("store4(s, 4 * (t // 2), cuda.float4(0, 0, 0, 0))", "race"),
    ("out[t] = load2(s, 2 * t).y", "uninitialised_shared_read"),
    ("out[t] = load4(s, t).x", "misaligned_address"),
    ("store4(s, 4 * t, a[t])", "unsupported"),
    ("if t < 5:\n        x = wmma.fill_fragment(0)", "warp_divergence"),
    ("x = wmma.load_matrix_sync(m, (t, 0))", "warp_divergence"),
    ("x = wmma.load_matrix_sync(m, (0, 4))", "misaligned_address"),
    ("x = wmma.load_matrix_sync(m, (1, 0))", "out_of_bounds"),
    ("out[t] = a[2:9][7]", "out_of_bounds"),
])
def test_errors_of_vectors_and_fragments(body, kind):
    text = f"""
def f(out, a, m):
    s = cuda.shared.array(256, float32)
    t = cuda.threadIdx.x
    {body}
"""
    arrays = np.zeros(64, np.float32), np.zeros(64, np.float32), np.zeros((16, 32), np.float16)
    assert error(text, 1, 32, *arrays)[0] == kind


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_warp_matrix_product(dtype):
    text = """
        def f(c, a, b):
            x = cuda.threadIdx.x // 32
            s = cuda.shared.array((16, 24), float16)
            row = cuda.blockIdx.y * 16
            col = (cuda.blockIdx.x * 2 + x) * 16
            acc = wmma.fill_fragment(0.0)
            for k in range(0, 32, 16):
                p = wmma.load_matrix_sync(a, (row, k))
                q = wmma.load_matrix_sync_transposed(b, (col, k))
                acc = wmma.mma_sync(p, q, acc)
            old = wmma.load_matrix_sync(c, (row, col))
            if x == 0:
                acc = acc * 2.0
            wmma.store_matrix_sync(c, (row, col), acc + old)
        """
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-4, 5, shape).astype(dtype) for shape in ((32, 32), (64, 32)))
    c = rng.integers(-9, 9, (32, 64)).astype(np.float32)
    (out, _, _), counters = run(text, (2, 2), 64, c, a, b)
    scale = np.where(np.arange(64) // 16 % 2 == 0, 2, 1)
    np.testing.assert_array_equal(out, (a.astype(float) @ b.astype(float).T) * scale + c)
    assert counters["tensor_flops"] == 2 * 32 * 64 * 32
    assert counters["flops"] == 32 * 64 + 32 * 32
    # 2 x 2 blocks, 2 warps, 2 steps: A and B tiles of 16 rows of 32 bytes; C: 16 rows of 64 bytes
    assert counters["global_load_sectors"] == 16 * 2 * 16 + 8 * 32
    assert counters["global_load_requests"] == 16 * 2 + 8 * 4
    assert counters["global_store_sectors"] == 8 * 32


def test_fragments_in_padded_shared_memory_have_no_conflicts():
    text = """
        def f(c, a):
            s = cuda.shared.array((16, {pitch}), float16)
            for r in range(16):
                if cuda.threadIdx.x < 16:
                    s[r, cuda.threadIdx.x] = a[r, cuda.threadIdx.x]
            cuda.syncthreads()
            p = wmma.load_matrix_sync(s, (0, 0))
            wmma.store_matrix_sync(c, (0, 0), wmma.mma_sync(p, p, wmma.fill_fragment(0)))
        """
    a = np.random.default_rng(1).integers(-4, 5, (16, 16)).astype(np.float16)
    for pitch, wavefronts in ((24, 4), (64, 32)):  # 8 rows of 16 bytes a turn
        (c, _), counters = run(text.format(pitch=pitch), 1, 32, np.zeros((16, 16), np.float32), a)
        np.testing.assert_array_equal(c, a.astype(np.float32) @ a.astype(np.float32))
        assert counters["shared_load_wavefronts"] == wavefronts


@settings(max_examples=15, deadline=None, derandomize=True)
@given(st.sampled_from([5, 32, 40]), st.sampled_from(["float16", "float32", "float64", "int32"]),
       st.integers(1, 3))
def test_dynamic_shared_memory(n, kind, blocks):
    """Two arrays of different types in the launch's bytes, as in numba's documentation."""
    text = f"""
        def f(out, a, n):
            x = cuda.shared.array(0, float32)[:n]
            y = cuda.shared.array(0, {kind})[4 * n:5 * n]
            t = cuda.threadIdx.x
            i = cuda.grid(1)
            x[t] = a[i]
            y[t] = {kind}(t)
            cuda.syncthreads()
            out[i] = x[n - 1 - t] + float32(y[(t + 1) % n])
        """
    a = np.arange(n * blocks, dtype=np.float32)
    (out, _, _), _ = run(text, blocks, n, a * 0, a, n, shared_bytes=40 * n)
    expected = a.reshape(blocks, n)[:, ::-1] + (np.arange(n) + 1) % n
    np.testing.assert_array_equal(out, expected.ravel())


@pytest.mark.parametrize(("offset", "kind"), [(0, "race"), (31, "race"), (32, None), (64, None)])
def test_arrays_of_two_types_over_one_memory_race(offset, kind):
    text = f"""
        def f(out):
            t = cuda.threadIdx.x
            x = cuda.shared.array(0, float64)
            y = cuda.shared.array(0, float32)
            if t < 16:
                x[t] = 1.0
            y[{offset} + t] = 2.0
        """
    arguments = (text, 1, 32, np.zeros(1))
    if kind is None:
        run(*arguments, shared_bytes=1024)
    else:
        assert error(*arguments, shared_bytes=1024)[0] == kind


def test_dynamic_shared_memory_must_be_given():
    text = """
        def f(out):
            s = cuda.shared.array(0, float32)
            s[cuda.threadIdx.x] = 1.0
        """
    assert error(text, 1, 8, np.zeros(1), shared_bytes=28)[0] == "out_of_bounds"
    kernel = kernels_from_text(textwrap.dedent(text))["f"]
    assert kernel[1, 8, 0, 32](np.zeros(1)).counters["shared_store_requests"] == 1


def test_slices_of_arrays():
    text = """
        def f(out, a, n):
            i = cuda.grid(1)
            row = a[i]
            part = a[i, 2:8:2]
            if i % 2 == 0:
                row = a[n - 1 - i]
            out[i] = row[1] + part[2] + len(part)
        """
    a = np.random.default_rng(2).random((40, 9)).astype(np.float32)
    (out, _, _), _ = run(text, 5, 8, np.zeros(40, np.float32), a, 40)
    rows = np.where(np.arange(40) % 2 == 0, 39 - np.arange(40), np.arange(40))
    np.testing.assert_allclose(out, a[rows, 1] + a[:, 6] + 3, rtol=1e-6)


@settings(max_examples=30, deadline=None, derandomize=True)
@given(st.sampled_from(["float16", "bfloat16"]), st.sampled_from(["+", "-", "*", "/"]),
       st.sampled_from(["a[i]", "b[i]", "float32(2)", "float16(3)", "1.5", "i", "3", "h"]))
def test_narrow_floats(kind, op, other):
    """Every operation rounds as numpy's does: a narrow operand keeps its type."""
    text = f"""
        def f(out, a, b, h):
            i = cuda.grid(1)
            x = a[i] {op} a[i]
            y = x {op} {other}
            if i % 3 > 0:
                y = max(-y, abs(x))
            out[i] = y
            b[i] = {kind}(y) + {kind}(i)
        """
    dtype = np.dtype(getattr(ml_dtypes, kind, None) or kind)
    a = (np.arange(40) % 13 / 4 + 0.5).astype(dtype)
    run(text, 2, 20, np.zeros(40), a, a[::-1].copy(), dtype.type(0.1))


def test_bfloat16_sum_stalls():
    """1 + 2^-9 rounds to 1 in bfloat16 however often it is added; in float32 it does not."""
    text = """
        def f(out, step):
            narrow = bfloat16(1.0)
            wide = float32(1.0)
            for k in range(64):
                narrow += step[0]
                wide += float32(step[0])
            out[0] = narrow
            out[1] = wide
        """
    (out, _), _ = run(text, 1, 1, np.zeros(2, np.float32), np.full(1, 2**-9, ml_dtypes.bfloat16))
    assert out.tolist() == [1.0, 1.125]


@pytest.mark.parametrize("first", [31, 95, 128, 1000])
@pytest.mark.parametrize("step", [1, 2, 4])
def test_shared_wavefronts_of_falling_indices(first, step):
    text = """
        def f(out, first, step):
            s = cuda.shared.array(1024, float32)
            t = cuda.threadIdx.x
            s[first - step * t] = t
        """
    lanes = min(32, first // step + 1)
    _, counters = run(text, 1, lanes, np.zeros(1), first, step)
    words = first - step * np.arange(lanes)
    assert counters["shared_store_wavefronts"] == np.bincount(words % 32).max()


def test_part_of_an_array_that_data_choose():
    text = """
        def f(out, a, b):
            i = cuda.grid(1)
            row = a[i]
            if b[i] > 0.5:
                row = a[39 - i]
            if b[i] > 0.7:
                row = a[3]
            out[i] = row[1] + row[i % 9]
        """
    rng = np.random.default_rng(3)
    a, b = rng.random((40, 9)), rng.random(40)
    (out, _, _), _ = run(text, 5, 8, np.zeros(40), a, b)
    i = np.arange(40)
    rows = a[np.where(b > 0.7, 3, np.where(b > 0.5, 39 - i, i))]
    np.testing.assert_array_equal(out, rows[:, 1] + rows[i, i % 9])


def test_barriers_that_count_and_bits():
    """Stream compaction by ballots and popc, and the three barriers that tell of a truth."""
    text = """
        def f(out, taken, votes, a):
            i = cuda.grid(1)
            t = cuda.threadIdx.x
            cuda.threadfence()
            count = cuda.syncthreads_count(a[i] > 0)
            most = cuda.syncthreads_and(a[i] > -9) + 2 * cuda.syncthreads_or(a[i] > 8)
            if t == 0:
                votes[cuda.blockIdx.x] = 10 * count + most
            ballot = cuda.ballot_sync(cuda.activemask(), a[i] > 0)
            if a[i] > 0:
                place = cuda.popc(ballot & ((1 << cuda.laneid) - 1))
                if place == 0:
                    cuda.atomic.add(taken, 0, cuda.popc(cuda.activemask()))
                out[t // 32 * 32 + place, cuda.blockIdx.x] = cuda.ffs(a[i])
        """
    a = np.arange(120) * 37 % 19 - 9
    (out, taken, votes, _), counters = run(
        text, 3, 40, np.zeros((64, 3), np.int64), np.zeros(1, np.int64), np.zeros(3, np.int64), a)
    for block in range(3):
        mine = a[40 * block:40 * block + 40]
        assert votes[block] == 10 * (mine > 0).sum() + (mine > -9).all() + 2 * (mine > 8).any()
        for part, first in ((mine[:32], 0), (mine[32:], 32)):
            kept = part[part > 0]
            assert out[first:first + len(kept), block].tolist() == [
                (int(x) & -int(x)).bit_length() for x in kept]
    assert taken[0] == 3 * 2  # of each warp one lane is there
    assert counters["barrier_warps"] == 3 * 2 * 3


def test_and_or_give_values():
    text = """
        def f(out, a):
            i = cuda.grid(1)
            x = a[i] or 7
            y = a[i] > 2 and i
            out[i] = x * 100 + (y or a[0] or 5)
        """
    a = np.arange(16) % 4
    (out, _), _ = run(text, 2, 8, np.zeros(16, np.int64), a)
    assert out.tolist() == [(x or 7) * 100 + ((x > 2 and i) or a[0] or 5)
                            for i, x in enumerate(a.tolist())]
