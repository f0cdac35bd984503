"""Wrong answers to notebook gpu_3: what people write by mistake, in place of what is right.

Every one must fail on the hidden cases; `test_mutants.py` runs them. Never handed out.
"""

from __future__ import annotations

from tests.exercises.changing import changed

MUTANTS: dict[str, dict[str, str]] = {
    "gpu/occupancy": changed(
        "resident",
        {
            "threads rounded down": ("(threads + 31) // 32", "max(1, threads // 32)"),
            "no unit of registers": ("(32 * registers + 255) // 256 * 256", "32 * registers"),
            "unit of 512": (
                "(32 * registers + 255) // 256 * 256",
                "(32 * registers + 511) // 512 * 512",
            ),
            "no quarters": ("4 * (16384 // per_warp)", "65536 // per_warp"),
            "no limit of blocks": ("min(32, 64", "min(64, 64"),
            "no reserve": ("(shared + 1024)", "max(1, shared)"),
            "registers for threads": (
                "4 * (16384 // per_warp) // warps",
                "65536 // (registers * threads)",
            ),
            "48 warps": ("64 // warps", "48 // warps"),
            "blocks alone": ("[blocks, blocks * warps]", "blocks"),
            "threads for warps": ("blocks * warps]", "blocks * threads]"),
            "turned": ("[blocks, blocks * warps]", "[blocks * warps, blocks]"),
            "no shared memory": (", 167936 // (shared + 1024)", ""),
            "48 KiB": ("167936", "49152"),
        },
    ),
    "gpu/roofline": changed(
        "gemm_time",
        {
            "sum": (
                "max(2 * n**3 / peak, moved / bandwidth)",
                "2 * n**3 / peak + moved / bandwidth",
            ),
            "shorter": ("max(2", "min(2"),
            "one flop": ("2 * n**3", "n**3"),
            "numbers for bytes": ("moved = 4 *", "moved ="),
            "no result": (" + n * n)", ")"),
            "A only": ("tiles * 2 * tile * n", "tiles * tile * n"),
            "read once": ("tiles * 2 * tile * n", "2 * n * n"),
            "half precision": ("moved = 4 *", "moved = 2 *"),
            "tiles along one side": ("(n / tile) ** 2", "n / tile"),
            "no tiles": ("(n / tile) ** 2", "n**2"),
            "computing only": (", moved / bandwidth)", ", 0)"),
            "moving only": ("max(2 * n**3 / peak", "max(0"),
        },
    ),
    "gpu/waves": changed(
        "utilisation",
        {
            "tiles rounded down": ("-(-m // tile_m)", "max(1, m // tile_m)"),
            "no waves": ("-(-tiles // sms)", "tiles / sms"),
            "waves rounded down": ("-(-tiles // sms)", "max(1, tiles // sms)"),
            "tiles only": ("m * n / (waves * sms * tile_m * tile_n)", "tiles / (waves * sms)"),
            "edges only": ("waves * sms * tile_m", "tiles * tile_m"),
            "no round for rows": ("-(-m // tile_m)", "m / tile_m"),
            "no round for columns": ("-(-n // tile_n)", "n / tile_n"),
            "area": ("-(-m // tile_m) * -(-n // tile_n)", "-(-m * n // (tile_m * tile_n))"),
            "sides swapped": (
                "-(-m // tile_m) * -(-n // tile_n)",
                "-(-m // tile_n) * -(-n // tile_m)",
            ),
            "one wave": ("-(-tiles // sms)", "1"),
            "percent": ("m * n / (", "100 * m * n / ("),
            "loss": ("return m * n", "return 1 - m * n"),
        },
    ),
    "gpu/counters": changed(
        "efficiencies",
        {
            "sector a request": ("4 * counters", "counters"),
            "eight sectors": ("4 * counters", "8 * counters"),
            "nothing is nothing": ("else 1.0", "else 0.0"),
            "divided by nothing": (" if all_of_it else 1.0", ""),
            "upside down": ("useful / all_of_it if all_of_it", "all_of_it / useful if useful"),
            "share that diverges": (
                'branches - counters["divergent_branches"], branches',
                'counters["divergent_branches"], branches',
            ),
            "stores": ('counters["global_load_sectors"]', 'counters["shared_load_wavefronts"]'),
            "two of three": ("        share(branches", "        1.0 if True else share(branches"),
            "conflicts": (
                'counters["shared_load_wavefronts"])',
                'counters["shared_load_wavefronts"] - counters["shared_load_requests"])',
            ),
            "per cent": ("useful / all_of_it if", "100 * useful / all_of_it if"),
            "rounded": ("useful / all_of_it if", "round(useful / all_of_it, 2) if"),
        },
    ),
    "gpu/race": changed(
        "subtract_max",
        {
            "no first barrier": (
                "    largest[t] = mine\n    cuda.syncthreads()\n",
                "    largest[t] = mine\n",
            ),
            "barrier in the if": (
                "largest[t + step])\n        cuda.syncthreads()",
                "largest[t + step])\n            cuda.syncthreads()",
            ),
            "no barrier in the loop": ("        cuda.syncthreads()\n", ""),
            "leaves early": (
                "    mine = a[i] if i < n else float32(-3.0e38)",
                "    if i >= n:\n        return\n    mine = a[i]",
            ),
            "zero outside": ("float32(-3.0e38)", "float32(0)"),
            "unset outside": (
                "    largest[t] = mine\n",
                "    if i < n:\n        largest[t] = mine\n",
            ),
            "two barriers": (
                "        step //= 2",
                "        cuda.syncthreads()\n        step //= 2",
            ),
            "every read again": ("mine - largest[0]", "a[i] - largest[0]"),
            "maximum itself": ("mine - largest[0]", "largest[0]"),
            "minimum": ("max(largest[t]", "min(largest[t]"),
            "own place": ("mine - largest[0]", "mine - largest[t]"),
            "one round too few": ("step = 32", "step = 16"),
            "turned": ("mine - largest[0]", "largest[0] - mine"),
            "last barrier only": [
                ("    largest[t] = mine\n    cuda.syncthreads()\n", "    largest[t] = mine\n"),
                ("        cuda.syncthreads()\n", ""),
                (
                    "    if i < n:\n        out",
                    ("    cuda.syncthreads()\n    if i < n:\n        out"),
                ),
            ],
        },
    ),
    "gpu/cuda_c": changed(
        "bias_relu_source",
        {
            "integers": ("float value", "int value"),
            "no guard": ("if (i < rows && j < columns) {", "{"),
            "guard of columns missing": ("i < rows && j < columns", "i < rows"),
            "x along rows": [
                (
                    "int j = blockIdx.x * blockDim.x + threadIdx.x;",
                    "int i = blockIdx.x * blockDim.x + threadIdx.x;",
                ),
                (
                    "int i = blockIdx.y * blockDim.y + threadIdx.y;",
                    "int j = blockIdx.y * blockDim.y + threadIdx.y;",
                ),
            ],
            "by columns": ("i * columns + j", "j * rows + i"),
            "no relu": ("value > 0.0f ? value : 0.0f", "value"),
            "bias of the row": ("bias[j]", "bias[i]"),
            "bias after relu": [
                ("x[i * columns + j] + bias[j]", "x[i * columns + j]"),
                ("value : 0.0f", "value + bias[j] : bias[j]"),
            ],
            "no bias": (" + bias[j]", ""),
            "semicolon": (
                "float value = x[i * columns + j] + bias[j];",
                "float value = x[i * columns + j] + bias[j]",
            ),
            "name": ("void bias_relu(", "void relu_bias("),
            "two indices": ("out[i * columns + j]", "out[i][j]"),
            "thread of the block": ("blockIdx.x * blockDim.x + threadIdx.x", "threadIdx.x"),
            "returns nothing": ("    return ", "    text = "),
            "not a float": ("float value", "bool value"),
        },
    ),
    "gpu/cube": changed(
        "largest_tile",
        {
            "one buffer": ("2 * 2 * k", "2 * k"),
            "four bytes": ("2 * 2 * k", "2 * 4 * k"),
            "half results": ("4 * m * n", "2 * m * n"),
            "no L0C": ("4 * m * n <= l0c", "True"),
            "strictly less": ("4 * m * n <= l0c", "4 * m * n < l0c"),
            "area": ("m * n / (m + n), m, n", "m * n, m, n"),
            "more columns": ("m * n / (m + n), m, n)", "m * n / (m + n), -m, -n)"),
            "L0A for both": ("l0b //", "l0a //"),
            "last row left out": ("l0a // (2 * 2 * k) + 1", "l0a // (2 * 2 * k)"),
            "any number": (", 16):\n        for", ", 8):\n        for"),
            "squares": ("4 * m * n <= l0c", "m == n and 4 * m * n <= l0c"),
            "double results": ("4 * m * n", "8 * m * n"),
            "turned": ("list(best[1:])", "list(best[:0:-1])"),
            "with the value": ("list(best[1:])", "list(best)"),
        },
    ),
    "gpu/flags": changed(
        "multiply",
        {
            "numpy": ("    core.fixpipe(C, c)", "    core.fixpipe(C, c)\n    C[:] = A @ B"),
            "no flag to MTE1": [
                ('        core.set_flag("MTE2", "MTE1", s)\n', ""),
                ('        core.wait_flag("MTE2", "MTE1", s)\n', ""),
            ],
            "no flag to M": [
                ('        core.set_flag("MTE1", "M", s)\n', ""),
                ('        core.wait_flag("MTE1", "M", s)\n', ""),
            ],
            "no flag to FIXP": [
                ('    core.set_flag("M", "FIXP", 0)\n', ""),
                ('    core.wait_flag("M", "FIXP", 0)\n', ""),
            ],
            "no way back to MTE2": [
                (
                    (
                        "        if i >= 2:\n"
                        '            core.wait_flag("MTE1", "MTE2", s)  # L1 has been read\n'
                    ),
                    "",
                ),
                ('        if i + 2 < steps:\n            core.set_flag("MTE1", "MTE2", s)\n', ""),
            ],
            "no way back to MTE1": [
                (
                    (
                        "        if i >= 2:\n"
                        '            core.wait_flag("M", "MTE1", s)  # L0A and L0B have been '
                        "multiplied\n"
                    ),
                    "",
                ),
                ('        if i + 2 < steps:\n            core.set_flag("M", "MTE1", s)\n', ""),
            ],
            "set and not waited for": ('        core.wait_flag("MTE1", "M", s)\n', ""),
            "waited for and not set": ('        core.set_flag("MTE1", "M", s)\n', ""),
            "one buffer": [
                ("for _ in range(2)", "for _ in range(1)"),
                ("s, part = i % 2", "s, part = 0"),
                ("i >= 2", "i >= 1"),
                ("i + 2 < steps", "i + 1 < steps"),
            ],
            "not accumulated": (", accumulate=i > 0", ""),
            "always accumulated": ("accumulate=i > 0", "accumulate=True"),
            "last step left out": ("steps = k // 64", "steps = max(1, k // 64 - 1)"),
            "copy too late": ("        core.data_copy(b1[s], B[part])\n", ""),
            "rows of A": ("A[:, part]", "A[part]"),
            "wrong buffer": ('for place in ("B1", "B2")', 'for place in ("B1", "A2")'),
            "written in each step": (
                (
                    '    core.set_flag("M", "FIXP", 0)\n    core.wait_flag("M", "FIXP", 0)\n'
                    "    core.fixpipe(C, c)\n"
                ),
                (
                    '        core.set_flag("M", "FIXP", 0)\n'
                    '        core.wait_flag("M", "FIXP", 0)\n'
                    "        core.fixpipe(C, c)\n"
                ),
            ),
            "same flag for both ways": (
                'core.wait_flag("MTE1", "MTE2", s)',
                'core.wait_flag("MTE2", "MTE1", s)',
            ),
            "no fixpipe": ("    core.fixpipe(C, c)\n", ""),
        },
    ),
}
