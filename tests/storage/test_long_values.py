"""Long values are copied by pieces, and come out as they went in."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ivm.stops import movable
from ivm.words import BYTEA, TEXT
from storage import long_values
from storage.dictionary import LONG, Dictionary
from storage.types.codec import decode_one, encode_one


@pytest.fixture(autouse=True, scope="module")
def short() -> Iterator[None]:
    """Everything is long."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(long_values, "LONG", 2)
        patch.setattr(long_values, "PIECE", 3)
        yield


@given(st.text(max_size=40), st.lists(st.binary(max_size=20), max_size=9))
def test_copies(text: str, values: list[bytes]) -> None:
    assert long_values.encoded(text) == text.encode()
    assert long_values.decoded(text.encode()) == text
    laid = long_values.laid_out(values)
    assert long_values.copied(laid) == b"".join(values)
    assert laid.flags.writeable  # kernels are compiled for such arrays


def test_a_piece_is_no_longer_than_it_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is decoded, encoded or copied in one go."""
    monkeypatch.setattr(long_values, "LONG", 1 << 20)
    monkeypatch.setattr(long_values, "PIECE", 1 << 18)
    dictionary, text = Dictionary(bytes(16)), "abcäöü€" * 300_000
    calls = 0

    def seen(frame: object, event: str, called: object) -> None:
        nonlocal calls
        if event == "c_call":
            calls += 1

    sys.setprofile(seen)
    try:
        word = encode_one(TEXT, text, dictionary)
        dictionary.forget_recent()
        found = decode_one(TEXT, word, dictionary)
    finally:
        sys.setprofile(None)
    assert found == text
    assert calls > 4 * len(text.encode()) // (1 << 18)
    raw = np.random.default_rng(1).bytes(3 << 20)
    word = encode_one(BYTEA, raw, dictionary)
    dictionary.forget_recent()
    assert decode_one(BYTEA, word, dictionary) == raw


class ElsewhereError(Exception):
    """The work goes on elsewhere."""


def test_a_long_value_is_not_fetched_where_others_wait() -> None:
    dictionary = Dictionary(bytes(16))
    short, long = (dictionary.intern_one(bytes(size)) for size in (1000, 2 * LONG))
    with movable(60, ElsewhereError):
        assert dictionary.lookup_one(short) == bytes(1000)
    with pytest.raises(ElsewhereError), movable(60, ElsewhereError):
        dictionary.lookup_one(long)
    with movable(60, lambda: None):  # it must go on here
        assert len(dictionary.lookup_one(long)) == 2 * LONG
