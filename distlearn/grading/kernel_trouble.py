"""What a kernel, or a program of a cube core, did that it may not: with what to try."""

from __future__ import annotations

_STATUS = {
    "global_race": "race",
    "uninitialised_shared_read": "uninitialised memory",
    "int32_overflow": "overflow",
    "spin_wait": "endless loop",
    "unsupported": "not for kernels",
    "source": "CUDA C error",
    "overflow": "buffer overflow",
    "uninitialised": "uninitialised memory",
    "layout": "wrong buffer or shape",
    "by_hand": "not by the core",
}
_ADVICE = {
    "out_of_bounds":
        "There can be more threads than elements: a thread whose index, or whose neighbour's, is "
        "beyond the end must do nothing with it.",
    "race":
        "Between writing shared memory and reading what another thread wrote, all threads of "
        "the block have to wait: `cuda.syncthreads()`. Before it is written again, too.",
    "global_race":
        "Two threads use one element of global memory, and nothing orders them. Give each "
        "element one thread, or use an atomic.",
    "barrier_divergence":
        "Every thread of the block has to come to the barrier: take it out of the `if`, and "
        "let no thread `return` before it.",
    "uninitialised_shared_read":
        "Shared memory starts with anything. Which thread should have written this word, also "
        "at the edge?",
    "misaligned_address": "A vector load starts at a multiple of its size.",
    "warp_divergence": "All lanes of a warp have to take part in this operation.",
    "int32_overflow": "Does every loop end? Does its variable change?",
    "division_by_zero": "Which denominator can be 0?",
    "spin_wait":
        "Does the loop's condition ever change? Threads cannot wait for each other but at "
        "barriers.",
    "unbound_variable": "The variable has a value only on some ways through the kernel.",
    "unsupported":
        "Kernels know numbers, arrays and loops over range; no lists, no printing, no other "
        "libraries.",
    "bad_launch": "Look at the arguments that the question names.",
    "source": "Look at this line: brackets, semicolons, types, spelling.",
    "overflow":
        "Add up what lies in this buffer at one time, with both halves of what is double- "
        "buffered.",
    "deadlock":
        "A pipe waits for a flag that is never set, or set only behind what waits for it. "
        "Follow the flags one by one.",
    "unpaired_flag": "Each `set_flag` needs one `wait_flag`, on the same id.",
    "uninitialised": "An instruction reads what nobody wrote: which copy is missing, or too late?",
    "layout": "Follow the data: global, L1, L0A and L0B, L0C, global.",
    "queue": "What is taken out of a queue was put in before, and is freed after.",
    "by_hand":
        "The program only tells the core what to do: C is written by `fixpipe`, when the check "
        "runs it.",
    "event_ids": "There are 8 ids between two pipes: use one again.",
    "cube_race":
        "The two pipes run side by side. `set_flag` behind the one that has to be first, "
        "`wait_flag` in front of the other, with the same pipes and id.",
}

_ONE_THREAD = ("A kernel is the work of one thread: it takes elements, such as `a[i]`, and "
               "computes with them.")
_SIZE = "How many elements has this array, and which is the largest index that a thread uses?"
# What to try instead: of a kind, where the message has these words.
_CLOSER = {
    ("out_of_bounds", "index -"):
        "There is no counting from the end in a kernel, and nothing in front of element 0: which "
        "thread's index is below 0?",
    ("out_of_bounds", "the shared array"): _SIZE,
    ("out_of_bounds", "local array"): _SIZE,
    ("unbound_variable", "local array"):
        "A local array starts with anything: give each element a value first.",
    ("unsupported", "index is no integer"):
        "`/` gives a float; an index is divided with `//`.",
    ("unsupported", "whole array"): _ONE_THREAD,
    ("unsupported", "indices for an array"): _ONE_THREAD,
    ("unsupported", "MatMult"): _ONE_THREAD,
    ("unsupported", "raise has no place"):
        "Take out the line with `raise`: your code takes its place.",
    ("unsupported", "is not modelled"):
        "`cuda.threadIdx`, `blockIdx`, `blockDim` and `gridDim` have the parts `.x`, `.y` and "
        "`.z`, with capitals as here.",
    ("unsupported", "cuda."):
        "Is it spelt as in the question, capitals too, with its arguments?",
}


def in_words(message: str) -> tuple[str, str, str]:
    """Status, sentence and hint for ``kind: what happened``.

    >>> in_words("division_by_zero: 1 // 0 in thread 3")[:2]
    ('division by zero', 'division by zero: 1 // 0 in thread 3')
    """
    kind, _, what = message.partition(": ")
    status = _STATUS.get(kind, kind.replace("_", " "))
    if kind == "race" and any(pipe in what for pipe in ("MTE1", "MTE2", "FIXP")):
        kind = "cube_race"
    if "defined nowhere" in what:
        return status, what.rstrip("."), "Is the name spelt right, and defined in a cell above?"
    if kind == "source" and not what.startswith("line"):
        return status, what.rstrip("."), "The function hands back the whole text with `return`."
    closer = (advice for (of, words), advice in _CLOSER.items() if of == kind and words in what)
    return status, f"{status}: {what.rstrip('.')}", next(closer, _ADVICE.get(kind, ""))
