"""The formats against the definition, element by element."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from distlearn.kernels.ascend import fractal_bytes, from_fractals, to_fractals

sizes = st.tuples(st.integers(1, 70), st.integers(1, 70))
fractals = st.sampled_from([(16, 16), (16, 8), (16, 32), (2, 4)])


@given(sizes, fractals, st.sampled_from(["Nz", "Zz", "Zn"]))
def test_there_and_back(shape, fractal, name):
    matrix = np.arange(shape[0] * shape[1]).reshape(shape) + 1
    packed = to_fractals(matrix, name, fractal)
    assert packed.flags.c_contiguous
    assert packed.size * 2 == fractal_bytes(shape, name, fractal, 2)
    assert np.array_equal(from_fractals(packed, name, shape), matrix)
    assert packed.sum() == matrix.sum()  # the padding is zeros


@given(sizes, fractals, st.randoms())
def test_every_element_is_where_the_letters_say(shape, fractal, random):
    matrix = np.arange(shape[0] * shape[1]).reshape(shape)
    i, j = random.randrange(shape[0]), random.randrange(shape[1])
    r, c = fractal
    tall, wide = -(-shape[0] // r), -(-shape[1] // c)
    inside = i % r * c + j % c
    zz = to_fractals(matrix, "Zz", fractal).ravel()
    assert zz[(i // r * wide + j // c) * r * c + inside] == matrix[i, j]
    nz = to_fractals(matrix, "Nz", fractal).ravel()
    assert nz[(j // c * tall + i // r) * r * c + inside] == matrix[i, j]
    across = -(-shape[1] // r)
    zn = to_fractals(matrix, "Zn", fractal).ravel()
    assert zn[(i // c * across + j // r) * r * c + j % r * c + i % c] == matrix[i, j]


def test_bad_input_is_named():
    with pytest.raises(ValueError, match="format must be one of Nz, Zz, Zn; got 'ND'"):
        to_fractals(np.zeros((2, 2)), "ND", (16, 16))
    with pytest.raises(ValueError, match="matrix must have two axes"):
        to_fractals(np.zeros(2), "Nz", (16, 16))
    with pytest.raises(ValueError, match=r"shape \(17, 4\) is larger than the 16 x 16"):
        from_fractals(np.zeros((1, 1, 16, 16)), "Nz", (17, 4))
    with pytest.raises(ValueError, match="fractals must have four axes"):
        from_fractals(np.zeros((16, 16)), "Nz", (16, 16))
