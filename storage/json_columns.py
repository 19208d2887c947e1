"""Columns of JSON texts (``storage.text_columns``): their parts, what they are, and texts as JSON strings.

``ivm.kernels.json`` does the work, over jsonb's canonical text and, *loosely*, over text of type json. In what this
gives a length of 0 says that there is nothing, of -1 that it must be found otherwise.
"""

from __future__ import annotations

import numpy as np

from ivm.rows import Mask, Words, plain
from storage.text_columns import TextColumn, of_bytes, room_for


def inner(keys: TextColumn) -> TextColumn:
    """What stands between the quotes of JSON strings."""
    return TextColumn(keys.starts + 1, keys.lengths - 2, keys.held)


def stepped(
    column: TextColumn, keys: TextColumn | None, indexes: Words | int | None, *, loose: bool, scalars: bool = False
) -> TextColumn:
    """Of each object the value of a key, as it stands between quotes, of each array the element of an index; None: of
    none. With ``scalars`` a scalar is an array of itself."""
    from ivm.kernels import json

    found, count = column.copy(), len(column)
    zeros = np.zeros(count, np.int64)
    names, sizes = (zeros, zeros) if keys is None else (keys.starts, keys.lengths)
    places = plain(np.broadcast_to(json.NO_INDEX if indexes is None else indexes, count))
    json.step(found.starts, found.lengths, plain(names), plain(sizes), places, loose, scalars)
    return found


def uncovered(column: TextColumn) -> tuple[TextColumn, Mask]:
    """The values as SQL's texts, strings without quotes and escapes, and which are null."""
    from ivm.kernels import json

    found, which = column.copy(), np.empty(len(column), np.int64)
    size = json.uncover(found.starts, found.lengths, which)
    if size:
        data, _ = room_for(np.array([size]))
        json.unescape(found.starts, found.lengths, which, data)
        found.held = (*column.held, data)
    return found, which == -1


def kinds(column: TextColumn) -> Words:
    """What each value is (NULL to OBJECT of the kernels), -1 where there is none."""
    from ivm.kernels import json

    out = np.empty(len(column), np.int64)
    json.kinds(column.starts, column.lengths, out)
    return out


def counts(column: TextColumn) -> Words:
    """How many elements each array has; -1: it is no array."""
    from ivm.kernels import json

    out = np.empty(len(column), np.int64)
    json.counts(column.starts, column.lengths, out)
    return out


def having(column: TextColumn, keys: TextColumn) -> Words:
    """1 where a string, as it stands between quotes, is a key of a canonical object, an element of an array, or the
    value itself."""
    from ivm.kernels import json

    out = np.empty(len(column), np.int64)
    json.has(column.starts, column.lengths, plain(keys.starts), plain(keys.lengths), out)
    return out


def quoted(column: TextColumn) -> TextColumn:
    """Texts as JSON strings. Raises TooLarge."""
    from ivm.kernels import json

    sizes = np.empty(len(column), np.int64)
    json.quoted_sizes(column.starts, column.lengths, sizes)
    data, offsets = room_for(sizes)
    json.quote(column.starts, column.lengths, offsets, data)
    return of_bytes(data, offsets)
