"""Sorting and consolidating updates: by (row, time), equal ones added up, zeros dropped.

If the words' ranges let an update fit one word (row, time, diff), such words are sorted, by merge sort or an LSD radix
sort over the bits that differ, and the updates are read from them. Otherwise a permutation is sorted. Below 24 updates:
by insertion. If a row, its time and its index fit one word: as such words. Else by merge sort below about a thousand
updates or if words compare as bytes, and by an 8-bit LSD radix sort that skips bytes in which all rows agree; if many
updates add up to few, only of the sums.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from ivm.kernels.cache import kernel
from ivm.kernels.combine import COMBINED, combine, most_groups
from ivm.kernels.memory import (
    B_COUNT,
    B_DIFF_WIDTH,
    B_DIFFS,
    B_ROWS,
    B_TIMES,
    B_WIDTH,
    BLOCK_WORDS,
    copy_words,
    lay_out,
    load,
    store,
)
from ivm.kernels.order import compare
from ivm.rows import Words

_INSERTION: Final = 24
_RADIX: Final = 1024
_PACKED_RADIX: Final = 96
_DIGIT: Final = 11
_PACKED_BITS: Final = 62
_SIGN: Final = -(2**63)


@kernel
def compare_updates(rows: int, times: int, width: int, order: int, i: int, j: int) -> int:
    """-1, 0 or 1 for updates i and j, by row and then time."""
    c = compare(rows + 8 * width * i, rows + 8 * width * j, 0, width, order)
    if c != 0:
        return c
    x = load(times + 8 * i)
    y = load(times + 8 * j)
    return -1 if x < y else (1 if x > y else 0)


@kernel
def _insertion(perm: Words, rows: int, times: int, width: int, order: int, count: int) -> None:
    for i in range(1, count):
        x = perm[i]
        j = i
        while j > 0 and compare_updates(rows, times, width, order, perm[j - 1], x) > 0:
            perm[j] = perm[j - 1]
            j -= 1
        perm[j] = x


@kernel
def _merging(perm: Words, rows: int, times: int, width: int, order: int, count: int) -> Words:
    for start in range(0, count, 16):
        stop = min(start + 16, count)
        for i in range(start + 1, stop):
            x = perm[i]
            j = i
            while j > start and compare_updates(rows, times, width, order, perm[j - 1], x) > 0:
                perm[j] = perm[j - 1]
                j -= 1
            perm[j] = x
    a = perm
    b = np.empty(count, np.int64)
    run = 16
    while run < count:
        for start in range(0, count, 2 * run):
            i = start
            middle = min(start + run, count)
            j = middle
            stop = min(start + 2 * run, count)
            for k in range(start, stop):
                if i < middle and (j >= stop or compare_updates(rows, times, width, order, a[i], a[j]) <= 0):
                    b[k] = a[i]
                    i += 1
                else:
                    b[k] = a[j]
                    j += 1
        a, b = b, a
        run *= 2
    return a


@kernel
def _radix(perm: Words, rows: int, times: int, width: int, count: int) -> Words:
    """Stable passes over the time, then the words from last to first."""
    other = np.empty(count, np.int64)
    words = np.empty(count, np.int64)
    other_words = np.empty(count, np.int64)
    histogram = np.empty(256, np.int64)
    for column in range(width, -1, -1):
        first = 0
        differ = 0
        for i in range(count):
            x = load(times + 8 * perm[i]) if column == width else load(rows + 8 * (width * perm[i] + column))
            x ^= _SIGN
            words[i] = x
            if i == 0:
                first = x
            differ |= x ^ first
        for shift in range(0, 64, 8):
            if (differ >> shift) & 255 == 0:
                continue
            histogram[:] = 0
            for i in range(count):
                histogram[(words[i] >> shift) & 255] += 1
            total = 0
            for k in range(256):
                n = histogram[k]
                histogram[k] = total
                total += n
            for i in range(count):
                digit = (words[i] >> shift) & 255
                at = histogram[digit]
                histogram[digit] = at + 1
                other_words[at] = words[i]
                other[at] = perm[i]
            words, other_words = other_words, words
            perm, other = other, perm
    return perm


@kernel
def _bits(span: int) -> int:
    """How many bits numbers up to ``span`` take; 64 if it has overflowed."""
    if span < 0:
        return 64
    bits = 0
    while span >> bits != 0:
        bits += 1
    return bits


@kernel
def _span(base: int, step: int, count: int) -> tuple[int, int]:
    """(the least of ``count`` words that lie ``step`` bytes apart, the bits of what exceeds it; 64: they do not fit)"""
    least = load(base)
    most = least
    for i in range(1, count):
        x = load(base + step * i)
        least = min(least, x)
        most = max(most, x)
    return least, _bits(most - least)


@kernel
def _pack(words: Words, rows: int, times: int, width: int, count: int, room: int, spans: Words) -> int:
    """Packs (row, time) of each update into one word that compares in the same way. Returns its bits, -1 if they exceed
    ``room``. ``spans`` int64[2 * (width + 1)] gets the least and the bits of each word and of the time."""
    bits = 0
    for column in range(width + 1):
        base, step = (times, 8) if column == width else (rows + 8 * column, 8 * width)
        spans[2 * column], spans[2 * column + 1] = _span(base, step, count)
        bits += spans[2 * column + 1]
        if bits > room:
            return -1
    for i in range(count):
        words[i] = 0
    for column in range(width + 1):
        base, step = (times, 8) if column == width else (rows + 8 * column, 8 * width)
        least, own = spans[2 * column], spans[2 * column + 1]
        if own != 0:
            for i in range(count):
                words[i] = words[i] << own | (load(base + step * i) - least)
    return bits


@kernel
def _sort_packed(words: Words, low: int, bits: int, count: int) -> Words:
    """Sorts words by ``bits`` bits from bit ``low`` on; below these, they are in order already or need not be."""
    return _merge_packed(words, count) if count <= _PACKED_RADIX else _radix_packed(words, low, bits, count)


@kernel
def _merge_packed(words: Words, count: int) -> Words:
    """Merge sort of words."""
    for start in range(0, count, 16):
        for i in range(start + 1, min(start + 16, count)):
            x = words[i]
            j = i
            while j > start and words[j - 1] > x:
                words[j] = words[j - 1]
                j -= 1
            words[j] = x
    a = words
    b = np.empty(count, np.int64)
    run = 16
    while run < count:
        for start in range(0, count, 2 * run):
            i = start
            middle = min(start + run, count)
            j = middle
            stop = min(start + 2 * run, count)
            for k in range(start, stop):
                if i < middle and (j >= stop or a[i] < a[j]):
                    b[k] = a[i]
                    i += 1
                else:
                    b[k] = a[j]
                    j += 1
        a, b = b, a
        run *= 2
    return a


@kernel
def _radix_packed(words: Words, low: int, bits: int, count: int) -> Words:
    """Stable radix passes over ``bits`` bits from bit ``low`` on; by the bits below, the words are in order already."""
    other = np.empty(count, np.int64)
    passes = (bits + _DIGIT - 1) // _DIGIT
    if passes == 0:
        return words
    if count < _RADIX:
        passes = (bits + 7) // 8
    digit = (bits + passes - 1) // passes
    mask = (1 << digit) - 1
    histogram = np.empty(mask + 1, np.int64)
    for turn in range(passes):
        shift = low + turn * digit
        histogram[:] = 0
        for i in range(count):
            histogram[(words[i] >> shift) & mask] += 1
        total = 0
        for k in range(mask + 1):
            n = histogram[k]
            histogram[k] = total
            total += n
        for i in range(count):
            x = words[i]
            to = (x >> shift) & mask
            at = histogram[to]
            histogram[to] = at + 1
            other[at] = x
        words, other = other, words
    return words


@kernel
def permutation(rows: int, times: int, width: int, order: int, count: int) -> Words:
    """The order of updates by (row, time), int64[count]."""
    perm = np.empty(count, np.int64)
    if count > _INSERTION and order == 0:
        place = _bits(count - 1)
        bits = _pack(perm, rows, times, width, count, _PACKED_BITS - place, np.empty(2 * width + 2, np.int64))
        if bits >= 0:
            for i in range(count):
                perm[i] = perm[i] << place | i
            perm = _sort_packed(perm, place, bits, count)
            mask = (1 << place) - 1
            for i in range(count):
                perm[i] &= mask
            return perm
    for i in range(count):
        perm[i] = i
    if count <= _INSERTION:
        _insertion(perm, rows, times, width, order, count)
        return perm
    if count <= _RADIX or order != 0:
        return _merging(perm, rows, times, width, order, count)
    return _radix(perm, rows, times, width, count)


@kernel
def is_sorted(rows: int, times: int, width: int, order: int, count: int) -> bool:
    """Whether updates are in the order of ``compare_updates``."""
    for i in range(1, count):  # noqa: SIM110  (numba has no all() over generators)
        if compare_updates(rows, times, width, order, i - 1, i) > 0:
            return False
    return True


@kernel
def _emit(source: Words, target: Words, perm: Words, ordered: bool) -> int:
    """Copies updates in order to the target, consolidated; returns how many."""
    count = source[B_COUNT]
    width = source[B_WIDTH]
    diff_width = source[B_DIFF_WIDTH]
    rows = source[B_ROWS]
    times = source[B_TIMES]
    diffs = source[B_DIFFS]
    out_rows = target[B_ROWS]
    out_times = target[B_TIMES]
    out_diffs = target[B_DIFFS]
    out = 0
    i = 0
    while i < count:
        first = i if ordered else perm[i]
        row = rows + 8 * width * first
        time = load(times + 8 * first)
        total = out_diffs + 8 * diff_width * out
        copy_words(diffs + 8 * diff_width * first, total, diff_width)
        i += 1
        while i < count:
            x = i if ordered else perm[i]
            if load(times + 8 * x) != time or compare(row, rows + 8 * width * x, 0, width, 0) != 0:
                break
            for k in range(diff_width):
                store(total + 8 * k, load(total + 8 * k) + load(diffs + 8 * (diff_width * x + k)))
            i += 1
        zero = True
        for k in range(diff_width):
            if load(total + 8 * k) != 0:
                zero = False
        if not zero:
            copy_words(row, out_rows + 8 * width * out, width)
            store(out_times + 8 * out, time)
            out += 1
    return out


@kernel
def _sort_whole(source: Words, target: Words) -> int:
    """``sort_block`` of updates of one diff word as words that hold all of each; -1: they do not fit."""
    count = source[B_COUNT]
    width = source[B_WIDTH]
    diffs = source[B_DIFFS]
    base, place = _span(diffs, 8, count)
    spans = np.empty(2 * width + 2, np.int64)
    words = np.empty(count, np.int64)
    bits = _pack(words, source[B_ROWS], source[B_TIMES], width, count, _PACKED_BITS - place, spans)
    if bits < 0:
        return -1
    for i in range(count):
        words[i] = words[i] << place | (load(diffs + 8 * i) - base)
    words = _sort_packed(words, place, bits, count)
    mask = (1 << place) - 1
    out_rows, out_times, out_diffs = target[B_ROWS], target[B_TIMES], target[B_DIFFS]
    out = 0
    i = 0
    while i < count:
        found = words[i] >> place
        total = 0
        while i < count and words[i] >> place == found:
            total += (words[i] & mask) + base
            i += 1
        if total == 0:
            continue
        own = spans[2 * width + 1]
        store(out_times + 8 * out, spans[2 * width] + (found & ((1 << own) - 1)))
        store(out_diffs + 8 * out, total)
        for column in range(width - 1, -1, -1):
            found >>= own
            own = spans[2 * column + 1]
            store(out_rows + 8 * (width * out + column), spans[2 * column] + (found & ((1 << own) - 1)))
        out += 1
    return out


@kernel
def sort_block(source: Words, target: Words, order: int) -> int:
    """Writes the source block's updates to the target block, sorted and consolidated. Returns how many.

    The target is another block with room for the source's count; what it held is overwritten.
    """
    count = source[B_COUNT]
    rows = source[B_ROWS]
    times = source[B_TIMES]
    width = source[B_WIDTH]
    if is_sorted(rows, times, width, order, count):
        out = _emit(source, target, np.empty(0, np.int64), True)
    else:
        out = -1
        if count > _INSERTION and order == 0 and source[B_DIFF_WIDTH] == 1:
            out = _sort_whole(source, target)
        if out < 0 and count >= COMBINED:
            room = np.empty(most_groups(count) * (width + 1 + source[B_DIFF_WIDTH]), np.int64)
            out = _sort_groups(source, target, order, room)
        if out < 0:
            out = _emit(source, target, permutation(rows, times, width, order, count), False)
    target[B_COUNT] = out
    return out


@kernel
def _sort_groups(source: Words, target: Words, order: int, room: Words) -> int:
    """``sort_block`` of the sums of equal updates, gathered in ``room``; -1: there are too many of them."""
    width = source[B_WIDTH]
    groups = np.empty(BLOCK_WORDS, np.int64)
    lay_out(room, groups, 0, width, source[B_DIFF_WIDTH], most_groups(source[B_COUNT]))
    if not combine(source, groups):
        return -1
    count, rows, times = groups[B_COUNT], groups[B_ROWS], groups[B_TIMES]
    return _emit(groups, target, permutation(rows, times, width, order, count), False)
