"""Errors as data: an error row is one word, the dictionary id of a JSON text with the error and the failed row.

In the store, a view that is down as a whole has one error row of its own, which says ``down``.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np

from ivm.errors import SqlError
from ivm.rows import Words
from storage.dictionary import Dictionary


def encode_error(error: SqlError, row: str | None = None) -> bytes:
    """The bytes of an error row: sqlstate, message, detail, hint, and the text of the failed row."""
    fields = {
        "sqlstate": error.sqlstate, "message": error.message, "detail": error.detail, "hint": error.hint, "row": row,
    }  # fmt: skip
    return json.dumps({k: v for k, v in fields.items() if v is not None}, ensure_ascii=False).encode()


def encode_failure(error: SqlError) -> bytes:
    """The bytes of the error row of a view that is down."""
    return json.dumps({**json.loads(encode_error(error)), "down": True}, ensure_ascii=False).encode()


def failure_among(texts: Sequence[bytes]) -> SqlError | None:
    """Why a view was down, if one of these error rows says so."""
    return next((decode_error(text)[0] for text in texts if "down" in json.loads(text)), None)


def decode_error(data: bytes) -> tuple[SqlError, str | None]:
    """The inverse of ``encode_error``."""
    fields = json.loads(data)
    error = SqlError(fields["sqlstate"], fields["message"], fields.get("detail"), fields.get("hint"))
    return error, fields.get("row")


def error_words(errors: Sequence[SqlError], rows: Sequence[str | None], dictionary: Dictionary) -> Words:
    """Error rows, int64[n, 1]."""
    if not errors:
        return np.zeros((0, 1), np.int64)
    ids = dictionary.intern([encode_error(e, r) for e, r in zip(errors, rows, strict=True)])
    return np.asarray(ids, np.int64).reshape(-1, 1)


def first_error(words: Words, dictionary: Dictionary) -> SqlError:
    """The error that a reader gets: the least error row by text, so that the choice is deterministic."""
    return least_error(dictionary.lookup(np.ascontiguousarray(words[:, 0])))


def least_error(texts: Sequence[bytes]) -> SqlError:
    """The same of the error rows' bytes."""
    error, row = decode_error(min(texts))
    error.of_row = True
    if error.detail is None and row not in (None, "()"):
        error.detail = f"Failing row contains {row}."
    return error
