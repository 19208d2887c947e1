"""LIKE patterns against a twin that tries everything."""

from __future__ import annotations

import random

import pytest

from ivm.errors import SqlError
from storage.types.like import like_pattern


def twin(value: str, pattern: str, ignore_case: bool) -> bool:
    """LIKE as its definition reads; 22025 as in PostgreSQL, when the escape is reached."""
    if not pattern:
        return not value
    c, rest = pattern[0], pattern[1:]
    if c == "%":
        return any(twin(value[i:], rest, ignore_case) for i in range(len(value) + 1))
    if c == "\\" and rest:
        c, rest = rest[0], rest[1:]
    elif c == "_" and value:
        return twin(value[1:], rest, ignore_case)
    if not value:
        return False
    same = value[0].lower() == c.lower() if ignore_case else value[0] == c
    return same and twin(value[1:], rest, ignore_case)


@pytest.mark.parametrize("ignore_case", [False, True])
def test_it_matches_as_defined(ignore_case: bool) -> None:
    """Random patterns and texts."""
    rng = random.Random(3)
    for _ in range(4000):
        pattern = "".join(
            rng.choice(["a", "b", "A", "%", "_", "\\%", "\\a", "\n", "é"]) for _ in range(rng.randint(0, 7))
        )
        value = "".join(rng.choice("aabA%\né") for _ in range(rng.randint(0, 8)))
        expected = twin(value, pattern, ignore_case)
        assert like_pattern(pattern, "\\", ignore_case).matches(value) is expected, (pattern, value)


@pytest.mark.parametrize(
    ("value", "pattern", "fails"),
    [("a", "a\\", False), ("ab", "a\\", True), ("a", "a%\\", True), ("b", "a%\\", False), ("ab", "a%_\\", True)],
)
def test_a_pattern_must_not_end_with_its_escape(value: str, pattern: str, fails: bool) -> None:
    """22025 where the text reaches it."""
    like = like_pattern(pattern, "\\", False)
    if not fails:
        assert not like.matches(value)
        return
    with pytest.raises(SqlError) as info:
        like.matches(value)
    assert info.value.sqlstate == "22025"


@pytest.mark.parametrize("ignore_case", [False, True])
@pytest.mark.parametrize("pattern", ["%a%a%a%a%a%b", "%a_a%a_a%a_%b", "%" * 1000 + "b", "%a%" * 1000 + "b"])
def test_many_wildcards_are_no_work(pattern: str, ignore_case: bool) -> None:
    """Each part is looked for once, from where the one before it ended."""
    assert not like_pattern(pattern, "\\", ignore_case).matches("a" * 200_000)
    assert like_pattern(pattern, "\\", ignore_case).matches("a" * 200_000 + "b")


def test_a_long_part_that_nearly_matches_everywhere_is_limited() -> None:
    """54001, as for a regular expression."""
    with pytest.raises(SqlError) as info:
        like_pattern("%" + "a_" * 2000 + "c%", "\\", False).matches("a" * 100_000 + "b")
    assert info.value.sqlstate == "54001"
