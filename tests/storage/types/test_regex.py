"""The matcher of regular expressions: the same answers as Python's ``re``, in bounded steps."""

from __future__ import annotations

import random
import threading

import pytest

from ivm.budget import Budget
from ivm.errors import SqlError
from ivm.stops import stoppable
from storage.types.regex import matching
from storage.types.regex.expressions import regex
from storage.types.regex.matching import Match, Regex, Search

ATOMS = [
    *"aabbcA.é", "[ab]", "[^a]", "\\w", "\\d", "\\s", "[[:alpha:]]", "[^[:alpha:]]", "[[:punct:]]", "ß", "[b-d]", "\\n",
]  # fmt: skip
PLACES = ["^", "$", "\\y", "\\m", "\\M", "(?=a)", "(?!b)", "(?<=a)", "(?<!ab)", "(?=.*b)", "(?!(a|b)+c)"]


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything is left to the kernel."""
    monkeypatch.setattr(matching, "QUICK", 0)
    regex.cache_clear()


def pattern(random: random.Random, depth: int, lazy: bool, either: bool) -> str:
    """A random expression, of greedy or of lazy quantifiers."""

    def item() -> str:
        chance = random.random()
        if chance < 0.12:
            return random.choice(PLACES)
        if chance < 0.2:
            return "\\1"
        atom = random.choice(ATOMS)
        if depth and chance > 0.7:
            atom = random.choice(["(", "(?:"]) + pattern(random, depth - 1, lazy, either) + ")"
        return atom + random.choice(["", "", "*", "+", "?", "{2}", "{0,3}", "{2,}"]) + ("?" * lazy if atom else "")

    def chain() -> str:
        return "".join(item() for _ in range(random.randint(1, 3)))

    return "|".join(chain() for _ in range(random.randint(1, 3) if either else 1))


def made(text: str, flags: str) -> Regex | None:
    try:
        return regex(text, flags)
    except SqlError:  # a group that there is not, a quantifier without an operand
        return None


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.usefixtures("slow")
def test_it_answers_as_python_does(lazy: bool) -> None:
    """On random expressions: whether they match, and without alternatives all matches with their groups."""
    rng = random.Random(7 + lazy)
    compared = 0
    for _ in range(700):
        either = rng.random() < 0.4
        found = made(pattern(rng, 2, lazy, either).replace("??", "?"), rng.choice(["", "", "i", "n", "p", "w", "ni"]))
        if found is None:
            continue
        for _ in range(4):
            text = "".join(rng.choice("aaabbcAé \n1Bß") for _ in range(rng.randint(0, 9)))
            try:
                matches = found.matches(text)
                spans = [] if found.mixed else [spans_of(match) for match in found.find_all(text)]
            except SqlError:
                assert "\\1" in found.pattern.pattern  # only those may take too many steps
                break
            assert matches is (found.pattern.search(text) is not None), (found.pattern.pattern, text)
            if not (found.longest or found.mixed):
                assert spans == python_matches(found, text), (found.pattern.pattern, text)
            compared += 1
    assert compared > 1500


def spans_of(match: Match) -> list[tuple[int, int]]:
    return [match.span(i) for i in range(match.group_count + 1)]


def python_matches(found: Regex, text: str) -> list[list[tuple[int, int]]]:
    """The spans of all matches by ``re``."""
    spans, at = [], 0
    while at <= len(text) and (match := found.pattern.search(text, at)):
        spans.append([match.span(i) for i in range(found.pattern.groups + 1)])
        at = match.end() + (match.end() == match.start())
    return spans


@pytest.mark.parametrize(
    ("pattern", "text", "span"),
    [
        ("a|ab|abc", "xabcd", (1, 4)),
        ("(a|ab)(c|bcd)", "abcd", (0, 4)),
        ("[^a]{2}|x\\Y", "1xb", (0, 2)),  # not ended by where the longest match ends
        ("a|ab\\M", "ab c", (0, 2)),
        ("foo|foobar(?=baz)", "foobarbaz", (0, 6)),
        ("foo|foobar(?=bay)", "foobarbaz", (0, 3)),
    ],
)
def test_the_longest_of_alternatives(pattern: str, text: str, span: tuple[int, int]) -> None:
    """Of the leftmost matches the longest counts."""
    found = regex(pattern).find(text)
    assert found is not None
    assert found.span() == span


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("^(a+)+$", "a" * 38 + "b"), ("^(a+)+$", "a" * 20_000 + "b"), ("(a|a)*c", "a" * 20_000), ("(a*)*c", "a" * 5000),
        ("(x+x+)+y", "x" * 5000), (".*.*.*.*=", "x" * 20_000), ("(a?){30}a{30}", "a" * 29), ("(.|\\s)*;", "x " * 9000),
        ("((a{1,9}){1,9}b)+", "a" * 5000), ("([a-z]+)*\\d", "q" * 20_000), ("^(([a-z])+.)+[A-Z]([a-z])+$", "a" * 9000),
    ],
)  # fmt: skip
def test_nested_quantifiers_take_steps_in_proportion(pattern: str, text: str) -> None:
    """Expressions with which ``re`` takes for ever."""
    found = regex(pattern)
    with Search(found, text) as search:
        before = search.left
        assert search.run(found.bare, 0, 0, len(text)) is None
        assert before - search.left < 100 * len(found.bare.words) * (len(text) + 1)
    assert not found.matches(text)
    assert found.find(text) is None


@pytest.mark.parametrize("pattern", [r"(a*)(a*)(a*)(a*)\1\2\3b", r"^(.*)*\1x$", r"^(?:(a+)+)+\1b"])
def test_back_references_end_with_an_error(pattern: str) -> None:
    """What cannot be remembered is limited."""
    with pytest.raises(SqlError) as info:
        regex(pattern).matches("a" * 300)
    assert info.value.sqlstate == "54001"


@pytest.mark.parametrize(
    "pattern", ["(a{255}){255}", "((a{1,255}){1,255}){1,255}", "ab" * 50_000, "(" * 100_000 + "a" + ")" * 100_000]
)
def test_what_is_too_large_is_refused(pattern: str) -> None:
    """2201B, as in PostgreSQL (which stands deeper parentheses)."""
    with pytest.raises(SqlError) as info:
        regex(pattern).matches("a" * 100)
    assert (info.value.sqlstate, info.value.message) == (
        "2201B", "invalid regular expression: regular expression is too complex",
    )  # fmt: skip


@pytest.mark.parametrize("pattern", ["\\m*a", "(?=a)*a", "^*", "a|*b", "(*a)", "$+"])
def test_a_constraint_takes_no_quantifier(pattern: str) -> None:
    """2201B, as in PostgreSQL."""
    with pytest.raises(SqlError) as info:
        regex(pattern)
    assert info.value.message == "invalid regular expression: quantifier operand invalid"


def test_a_cancel_ends_a_search() -> None:
    """Within a slice of steps."""
    cancel = threading.Event()
    cancel.set()
    with pytest.raises(SqlError) as info, stoppable(cancel):
        regex("^(a+)+$").matches("a" * 1_000_000 + "b")
    assert info.value.sqlstate == "57014"


def test_memory_is_asked_for() -> None:
    """A search takes its memory from the budget, and gives it back."""
    budget = Budget(1 << 20)
    with pytest.raises(SqlError) as info, stoppable(None, budget):
        regex("^(a+)+$").matches("a" * 1_000_000 + "b")
    assert info.value.sqlstate == "53200"
    assert budget.taken == 0
    budget.limit = 1 << 30
    with stoppable(None, budget):
        assert not regex("^(a+)+$").matches("a" * 1_000_000 + "b")
    assert budget.taken == 0


def test_looks_stay_right_when_much_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    """A look that succeeds forgets what it tried, also after the log of that has begun anew."""
    monkeypatch.setattr(matching, "_LOG", 64)
    monkeypatch.setattr(matching, "QUICK", 0)
    text = "ab" * 300 + "c"
    assert regex("^(?:(?=(?:a|b)*c)[ab])*c$").matches(text)
    assert not regex("^(?:(?=(?:a|b)*c)[ab])*d$").matches(text)
    assert regex("^(?:(?!(?:a|b)*d)[ab])*c$").matches(text)
