"""The direct way from image to pixels against transformers' processors, in every mode and shape."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from creperie.models import DirectPixels, Place, pixels_of
from creperie.models.pixels import ProcessorPixels


def processors() -> dict[str, Any]:
    import transformers as t

    square = {"height": 24, "width": 24}
    return {
        "clip": t.CLIPImageProcessorPil(size={"shortest_edge": 24}, crop_size=square),
        "clip, crop smaller": t.CLIPImageProcessorPil(size={"shortest_edge": 30}, crop_size=square),
        "clip, crop larger": t.CLIPImageProcessorPil(size={"shortest_edge": 20}, crop_size=square),
        "siglip": t.SiglipImageProcessorPil(size=square),
        "blip": t.BlipImageProcessorPil(size={"height": 24, "width": 36}),
        "vit, bilinear": t.ViTImageProcessorPil(size=square),
        "flava": t.FlavaImageProcessorPil(size=square, crop_size=square),
    }


def noise(size: tuple[int, int], mode: str = "RGB", seed: int = 0) -> Image.Image:
    values = np.random.default_rng(seed).integers(0, 256, (size[1], size[0], 3), dtype=np.uint8)
    return Image.fromarray(values).convert(mode)


@pytest.mark.parametrize("name", processors())
@pytest.mark.parametrize("mode", ["RGB", "L", "RGBA", "P", "CMYK", "LA", "1"])
def test_same_as_processor(name: str, mode: str) -> None:
    processor = processors()[name]
    pixels = pixels_of(processor)
    assert isinstance(pixels, DirectPixels)
    for size in ((64, 48), (31, 90), (24, 24), (10, 7), (200, 30)):
        image = noise(size, mode)
        shown = image if processor.do_convert_rgb else image.convert("RGB")
        expected = processor(shown, return_tensors="np")["pixel_values"][0]
        prepared = pixels.prepare(image)
        assert prepared.dtype == np.uint8
        given = pixels.batch([prepared], Place())["pixel_values"][0].numpy()
        np.testing.assert_allclose(given, expected, atol=1e-6)


@given(width=st.integers(1, 300), height=st.integers(1, 300), seed=st.integers(0, 9))
def test_any_shape(width: int, height: int, seed: int) -> None:
    processor = processors()["clip"]
    image = noise((width, height), seed=seed)
    if int(24 * max(width, height) / min(width, height)) > 5000:
        return  # a strip of thousands of pixels is slow in the reference
    pixels = pixels_of(processor)
    expected = processor(image, return_tensors="np")["pixel_values"][0]
    given_values = pixels.batch([pixels.prepare(image)], Place())["pixel_values"][0].numpy()
    np.testing.assert_allclose(given_values, expected, atol=1e-6)


def test_other_recipes_keep_the_processor() -> None:
    """Rescaling around zero, resizing to multiples: not the common recipe, so not the fast way."""
    import transformers as t

    offset = t.EfficientNetImageProcessorPil(size={"height": 24, "width": 24}, rescale_offset=True)
    multiples = t.ViltImageProcessorPil(size={"shortest_edge": 24}, size_divisor=8)
    off = t.CLIPImageProcessorPil(size={"shortest_edge": 24}, do_normalize=False)
    for processor in (offset, multiples, off):
        assert isinstance(pixels_of(processor), ProcessorPixels)


def test_from_many_threads() -> None:
    pixels = pixels_of(processors()["clip"])
    images = [noise((80 + i, 60), seed=i) for i in range(16)]
    alone = [pixels.prepare(image) for image in images]
    barrier = threading.Barrier(8)

    def work(i: int) -> np.ndarray:
        if i < 8:
            barrier.wait()
        return pixels.prepare(images[i % 16])

    with ThreadPoolExecutor(8) as pool:
        for i, prepared in enumerate(pool.map(work, range(64))):
            np.testing.assert_array_equal(prepared, alone[i % 16])
