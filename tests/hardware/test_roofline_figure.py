"""The roofline figure, for its data: roofs, ridges and points are where the model says."""

import io
import re

import pytest

from distlearn.hardware import Work, adam_step, device, gemm, layer_norm, roofline
from distlearn.plots.palette import PALETTE, contrast
from distlearn.plots.roofline import roofline as draw
from distlearn.plots.roofline import roofline_text

DEVICES = [device(name) for name in ("A100-SXM4-80GB", "H100-SXM5-80GB", "Ascend-910B2")]
KERNELS = (adam_step(10**9), layer_norm(8192, 4096), gemm(128, 128, 128), gemm(4096, 4096, 4096))


def lines(figure, count):
    """The x and y data of the lines with ``count`` vertices, in drawing order."""
    return [line.get_xydata().tolist() for line in figure.axes[0].lines
            if len(line.get_xdata()) == count]


def test_roofs_rise_with_the_bandwidth_and_stop_at_the_peak():
    figure = draw(DEVICES)
    assert figure.axes[0].get_xscale() == figure.axes[0].get_yscale() == "log"
    roofs = lines(figure, 3)
    assert len(roofs) == len(DEVICES)
    for spec, (start, ridge, end) in zip(DEVICES, roofs, strict=True):
        assert start[1] * 1e12 == pytest.approx(start[0] * spec.memory_bytes_per_s)
        assert ridge[1] * 1e12 == end[1] * 1e12 == pytest.approx(spec.peak_flops("float16"))
        assert ridge[0] == pytest.approx(roofline(spec, 1, 1, "float16").ridge)


def test_every_kernel_stands_on_every_device():
    figure = draw(DEVICES, KERNELS)
    spots = lines(figure, 1)[len(DEVICES):]  # the first single points are the ridges
    expected = [(work, spec) for work in KERNELS for spec in DEVICES]
    assert len(spots) == len(expected)
    for ((x, y),), (work, spec) in zip(spots, expected, strict=True):
        assert x == pytest.approx(work.flops / work.bytes)
        assert y * 1e12 == pytest.approx(work.flops / roofline(spec, *work[1:]).time_s)


def test_everything_is_inside_the_axes_and_labelled():
    figure = draw(DEVICES, KERNELS)
    axes = figure.axes[0]
    (left, right), (bottom, top) = axes.get_xlim(), axes.get_ylim()
    for line in axes.lines:
        for x, y in line.get_xydata():
            assert left <= x <= right and bottom * (1 - 1e-9) <= y <= top
    texts = {text.get_text() for text in axes.texts}
    assert {"ridge 153", "ridge 295", "ridge 221", *(work.name for work in KERNELS)} <= texts
    figure.savefig(io.BytesIO(), format="png")  # any layout warning is an error here


def test_labels_do_not_overlap():
    figure = draw(DEVICES, KERNELS)
    figure.savefig(io.BytesIO(), format="png")
    boxes = [text.get_window_extent() for text in figure.axes[0].texts]
    boxes.append(figure.axes[0].get_legend().get_window_extent())
    for i, one in enumerate(boxes):
        assert not any(one.overlaps(other) for other in boxes[i + 1:])


def test_every_colour_has_a_dark_one_that_can_be_read():
    five = [*DEVICES, *DEVICES][:5]
    drawing, style = draw(five, KERNELS)._repr_svg_().split("<style>")
    background = PALETTE["dark"]["background"]
    for key, colour in set(re.findall(r"\b(fill|stroke): (#\w{6})", drawing)):
        assert f'"{key}: {colour}"' in style, f"{key} {colour} stays as it is in the dark"
    lines = set(re.findall(r"stroke: (#\w{6}); stroke-width: 2[;\"]", drawing))
    assert len(lines) == 5
    for colour in lines:
        dark = re.search(rf'"stroke: {colour}"\]{{stroke:(#\w{{6}})', style)[1]
        assert contrast(dark, background) >= 4.5, (colour, dark)


def test_text_alternative_names_every_device_and_kernel():
    text = roofline_text(DEVICES, KERNELS)
    assert draw(DEVICES, KERNELS).get_label() == text
    for name in [*(spec.name for spec in DEVICES), *(work.name for work in KERNELS)]:
        assert name in text


def test_vector_unit_and_one_device_by_name():
    (roof,) = lines(draw("A100-SXM4-80GB", dtype="float32", unit="vector", title="t"), 3)
    assert roof[1][1] == 19.5


@pytest.mark.parametrize(("chosen", "message"), [
    ([], "takes 1 to 5 devices; got 0"),
    (["A100-SXM4-80GB"] * 6, "takes 1 to 5 devices; got 6"),
])
def test_number_of_devices(chosen, message):
    with pytest.raises(ValueError, match=message):
        draw(chosen)


def test_points_that_log_axes_cannot_show():
    copy = Work("copy", 0.0, 1e9, "float16", "vector")
    with pytest.raises(ValueError, match="'copy' has flops=0"):
        draw("A100-SXM4-80GB", [copy])
