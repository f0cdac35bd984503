"""Wrong answers to notebook gpu_1: what people write by mistake, in place of what is right.

Every one must fail on the hidden cases; `test_mutants.py` runs them. Never handed out.
"""

from __future__ import annotations

from tests.exercises.changing import changed

_GUARD = "    if i < n:\n"
_BARRIER = "    cuda.syncthreads()\n"

MUTANTS: dict[str, dict[str, str]] = {
    "gpu/map": changed(
        "scale_and_shift",
        {
            "no guard": (_GUARD, "    if True:\n"),
            "one too many": ("i < n", "i <= n"),
            "one too few": ("i < n", "i < n - 1"),
            "thread number in the block": ("cuda.grid(1)", "cuda.threadIdx.x"),
            "block number for size": ("cuda.grid(1)", "cuda.blockIdx.x + cuda.threadIdx.x"),
            "grid size for block size": (
                "cuda.grid(1)",
                "cuda.blockIdx.x * cuda.gridDim.x + cuda.threadIdx.x",
            ),
            "bracket": ("3 * a[i] + 1", "3 * (a[i] + 1)"),
            "index for element": ("3 * a[i] + 1", "3 * i + 1"),
            "adds to what is there": ("out[i] = ", "out[i] += "),
            "every thread does everything": (
                "    if i < n:\n        out[i] = 3 * a[i] + 1",
                "    for i in range(n):\n        out[i] = 3 * a[i] + 1",
            ),
            "writes the input": ("out[i] = 3", "a[i] = 3"),
            "no decorator": ("@cuda.jit\n", ""),
        },
    ),
    "gpu/stride": changed(
        "relu",
        {
            "no loop": (
                "range(cuda.grid(1), n, cuda.gridsize(1))",
                "range(cuda.grid(1), min(n, cuda.grid(1) + 1))",
            ),
            "pieces": (
                "range(cuda.grid(1), n, cuda.gridsize(1))",
                (
                    "range(cuda.grid(1) * ((n - 1) // cuda.gridsize(1) + 1), "
                    "min(n, (cuda.grid(1) + 1) * ((n - 1) // cuda.gridsize(1) + 1)))"
                ),
            ),
            "no end": ("range(cuda.grid(1), n,", "range(cuda.grid(1), n + cuda.gridsize(1),"),
            "one too few": ("cuda.grid(1), n,", "cuda.grid(1), n - 1,"),
            "from the block's thread": ("cuda.grid(1), n", "cuda.threadIdx.x, n"),
            "step of a block": ("cuda.gridsize(1)", "cuda.blockDim.x"),
            "step of the grid": ("cuda.gridsize(1)", "cuda.gridDim.x"),
            "absolute value": ("max(a[i], float32(0))", "abs(a[i])"),
            "negative part": ("max(a[i]", "min(a[i]"),
            "everybody does all": ("cuda.grid(1), n, cuda.gridsize(1)", "0, n"),
            "skips zero": (
                "        out[i] = max(a[i], float32(0))",
                "        if a[i] > 0:\n            out[i] = a[i]",
            ),
        },
    ),
    "gpu/outer": changed(
        "outer_sum",
        {
            "x along columns of memory": ("j, i = cuda.grid(2)", "i, j = cuda.grid(2)"),
            "no guard for rows": ("i < out.shape[0] and ", ""),
            "no guard for columns": (" and j < out.shape[1]", ""),
            "either": (" and ", " or "),
            "shape swapped": [
                ("out.shape[0]", "out.shape[9]"),
                ("out.shape[1]", "out.shape[0]"),
                ("out.shape[9]", "out.shape[1]"),
            ],
            "product": ("col[i] + row[j]", "col[i] * row[j]"),
            "inputs swapped": ("col[i] + row[j]", "col[j] + row[i]"),
            "block's threads": ("cuda.grid(2)", "cuda.threadIdx.x, cuda.threadIdx.y"),
            "one dimension": ("cuda.grid(2)", "cuda.grid(1), cuda.threadIdx.y"),
            "written transposed": ("out[i, j]", "out[j, i]"),
            "last column left out": ("j < out.shape[1]", "j < out.shape[1] - 1"),
        },
    ),
    "gpu/rotate": changed(
        "rotate_pairs",
        {
            "two ways": (
                (
                    "        sign = float32(2 * (i % 2) - 1)  # -1 for the first of a pair, "
                    "1 for the second\n        out[i] = c * a[i] + sign * s * a[i ^ 1]"
                ),
                (
                    "        if i % 2 == 0:\n            out[i] = c * a[i] - s * a[i + 1]\n"
                    "        else:\n            out[i] = s * a[i - 1] + c * a[i]"
                ),
            ),
            "sign turned": ("2 * (i % 2) - 1", "1 - 2 * (i % 2)"),
            "no sign": ("sign * s", "s"),
            "always minus": ("sign * s", "-s"),
            "sine and cosine swapped": (
                "c * a[i] + sign * s * a[i ^ 1]",
                "s * a[i] + sign * c * a[i ^ 1]",
            ),
            "no guard": (_GUARD, "    if True:\n"),
            "next for partner": ("a[i ^ 1]", "a[(i + 1) % n]"),
            "partner of two": ("a[i ^ 1]", "a[(i ^ 2) % n]"),
            "halves for pairs": ("a[i ^ 1]", "a[(i + n // 2) % n]"),
            "in place": ("out[i] = ", "a[i] = "),
            "block's threads": ("cuda.grid(1)", "cuda.threadIdx.x"),
            "odd left out": ("i < n", "i < n and i % 2 == 0"),
            "three reads": ("a[i ^ 1]\n", "a[i ^ 1] + 0 * a[i ^ 3 if (i ^ 3) < n else 0]\n"),
        },
    ),
    "gpu/sectors": changed(
        "sectors_of_warp",
        {
            "lines": ("// 32 for", "// 128 for"),
            "no size": ("stride * size", "stride"),
            "no start": ("start + lane", "lane"),
            "banks": ("// 32 for", "% 32 for"),
            "words": ("(start + lane * stride * size) // 32", "start + lane * stride * size"),
            "31 lanes": ("range(32)", "range(31)"),
            "from lane 1": ("range(32)", "range(1, 33)"),
            "span": (
                "len({(start + lane * stride * size) // 32 for lane in range(32)})",
                "(start + 31 * stride * size) // 32 - start // 32 + 1",
            ),
            "bytes over 32": (
                "len({(start + lane * stride * size) // 32 for lane in range(32)})",
                "max(1, 32 * min(stride, 8) * size // 32)",
            ),
            "counted twice": (
                "len({(start + lane * stride * size) // 32 for lane in range(32)})",
                "len([(start + lane * stride * size) // 32 for lane in range(32)])",
            ),
            "always four": ("len({", "4 + 0 * len({"),
        },
    ),
    "gpu/transpose": changed(
        "transpose",
        {
            "no tile": ("        tile[y, x] = a[i, j]", "        out[j, i] = a[i, j]"),
            "no padding": ("(32, 33)", "(32, 32)"),
            "integers": ("(32, 33), float32", "(32, 33), np.int32"),
            "even padding": ("(32, 33)", "(32, 34)"),
            "no barrier": (_BARRIER, ""),
            "barrier inside": (
                "        tile[y, x] = a[i, j]\n    cuda.syncthreads()",
                "        tile[y, x] = a[i, j]\n        cuda.syncthreads()",
            ),
            "writes columns": [
                ("    i = cuda.blockIdx.y * 32 + x\n    j = cuda.blockIdx.x * 32 + y\n", ""),
                ("out[j, i] = tile[x, y]", "out[j, i] = tile[y, x]"),
            ],
            "blocks stay": (
                (
                    "    i = cuda.blockIdx.y * 32 + x\n    j = cuda.blockIdx.x * 32 + y\n",
                    "    i = cuda.blockIdx.x * 32 + x\n    j = cuda.blockIdx.y * 32 + y\n",
                )
            ),
            "copy": ("tile[x, y]", "tile[y, x]"),
            "no guard when loading": (
                "    if i < rows and j < columns:\n        tile",
                ("    if True:\n        tile"),
            ),
            "no guard when storing": (
                "    if i < rows and j < columns:\n        out",
                ("    if True:\n        out"),
            ),
            "early return": (
                "    if i < rows and j < columns:\n        tile[y, x] = a[i, j]",
                ("    if i >= rows or j >= columns:\n        return\n    tile[y, x] = a[i, j]"),
            ),
            "stored under the old guard": (
                "    if i < rows and j < columns:\n        out[j, i]",
                "    if i < columns and j < rows:\n        out[j, i]",
            ),
        },
    ),
    "gpu/banks": changed(
        "column_wavefronts",
        {
            "lanes": ("max(banks.count(bank) for bank in banks)", "len(set(banks))"),
            "conflicts": ("for bank in banks)", "for bank in banks) - 1"),
            "all rows": ("range(rows)", "range(32)"),
            "64 banks": ("% 32", "% 64"),
            "16 banks": ("% 32", "% 16"),
            "bytes": ("lane * width", "lane * width * 4"),
            "square": ("lane * width", "lane * rows"),
            "row read": ("lane * width", "lane"),
            "any multiple": (
                "max(banks.count(bank) for bank in banks)",
                "rows if width % 32 == 0 else 1",
            ),
            "greatest divisor": ("max(banks.count(bank) for bank in banks)", "np.gcd(width, 32)"),
            "one more": ("range(rows)", "range(rows + 1)"),
        },
    ),
}
