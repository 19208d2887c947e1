"""Nexmark's people, auctions and bids: of 50 events one is a person, three are auctions and the rest are bids.

Events are made from their numbers alone, so that the same numbers always give the same rows.
"""

from __future__ import annotations

import random
from datetime import datetime, timedelta
from typing import Final

Row = tuple[object, ...]
Event = tuple[str, Row]
"""A table, and a row of it."""

START: Final = datetime(2024, 3, 10, 17, 59, 50)
STEP: Final = timedelta(milliseconds=20)
"""Between two events."""
PEOPLE, AUCTIONS, EPOCH = 1, 3, 50
FIRST_PERSON, FIRST_AUCTION, FIRST_CATEGORY = 1000, 1000, 10
_NAMES: Final = ("Ada", "Ben", "Cleo", "Dan", "Eva", "Finn", "Gus", "Hana", "Ivo", "Jon")
_SURNAMES: Final = ("Abrams", "Bartels", "Noris", "Shultz", "Smith", "Walton", "Jones", "White")
_PLACES: Final = (
    ("Phoenix", "AZ"), ("Los Angeles", "CA"), ("San Francisco", "CA"), ("Boise", "ID"), ("Portland", "OR"),
    ("Bend", "OR"), ("Seattle", "WA"), ("Kent", "WA"), ("Cheyenne", "WY"),
)  # fmt: skip
_CHANNELS: Final = ("Google", "Facebook", "Baidu", "Apple")


def event(number: int) -> Event:
    """The event with this number."""
    epoch, place = divmod(number, EPOCH)
    made = random.Random(number)
    at = START + number * STEP
    people, auctions = epoch + min(place, PEOPLE), AUCTIONS * epoch + min(max(place - PEOPLE, 0), AUCTIONS)
    if place < PEOPLE:
        return "person", _person(made, people, at)
    if place < PEOPLE + AUCTIONS:
        return "auction", _auction(made, auctions, people, at)
    return "bid", _bid(made, auctions, people, at)


def inserted(first: int, last: int) -> list[str]:
    """Statements that insert the events first … last-1."""
    found: dict[str, list[Row]] = {}
    for number in range(first, last):
        table, row = event(number)
        found.setdefault(table, []).append(row)
    return [_insert(table, rows[i : i + 1000]) for table, rows in found.items() for i in range(0, len(rows), 1000)]


def side_input() -> str:
    """The statement that fills q13's other table."""
    return _insert("side_input", [(key, f"value {key % 7}") for key in range(100)])


def changed(number: int) -> list[str]:
    """What comes with an event that is not the first: every third event is taken back, and with every fifth the price
    of an earlier bid is mended."""
    table, row = event(number)
    made = [_insert(table, [row])]
    if number % 3 == 0:
        key = f"date_time = {_literal(row[5])}" if table == "bid" else f"id = {_literal(row[0])}"
        made.append(f"DELETE FROM {table} WHERE {key}")
    if number % 5 == 0:
        made.append(f"UPDATE bid SET price = price + 1000 WHERE date_time = {_literal(START + number // 2 * STEP)}")
    return made


def _insert(table: str, rows: list[Row]) -> str:
    shown = ", ".join(f"({', '.join(map(_literal, row))})" for row in rows)
    return f"INSERT INTO {table} VALUES {shown}"


def _literal(value: object) -> str:
    return str(value) if isinstance(value, int) else f"'{value}'"


def _word(made: random.Random, least: int, most: int) -> str:
    return "".join(made.choices("abcdefghijklmnopqrstuvwxyz", k=made.randint(least, most)))


def _price(made: random.Random) -> int:
    return int(100 * 10 ** (6 * made.random()))


def _late(made: random.Random, count: int, hot: int) -> int:
    """A number below ``count``: one in two is the latest hundredth's first, most of the rest are late."""
    if made.random() < 0.5:
        return max(count - 1, 0) // hot * hot
    return max(0, count - 1 - made.randrange(100))


def _person(made: random.Random, number: int, at: datetime) -> Row:
    name = f"{made.choice(_NAMES)} {made.choice(_SURNAMES)}"
    city, state = made.choice(_PLACES)
    card = " ".join(f"{made.randrange(10_000):04}" for _ in range(4))
    address = f"{_word(made, 3, 7)}@{_word(made, 3, 5)}.com"
    return FIRST_PERSON + number, name, address, card, city, state, at, _word(made, 5, 20)


def _auction(made: random.Random, number: int, people: int, at: datetime) -> Row:
    initial = _price(made)
    expires = at + timedelta(milliseconds=made.randint(1, 20_000))
    seller = FIRST_PERSON + _late(made, people, 4)
    category = FIRST_CATEGORY + made.randrange(5)
    return (
        FIRST_AUCTION + number, _word(made, 5, 20), _word(made, 10, 40), initial, initial + _price(made), at, expires,
        seller, category, _word(made, 5, 20),
    )  # fmt: skip


def _bid(made: random.Random, auctions: int, people: int, at: datetime) -> Row:
    auction = FIRST_AUCTION + _late(made, auctions, 10)
    bidder = FIRST_PERSON + _late(made, people, 10)
    url = f"https://www.nexmark.com/{_word(made, 3, 5)}/{_word(made, 3, 5)}/{_word(made, 3, 5)}/item.htm?query=1"
    if made.random() < 0.5:
        channel = made.choice(_CHANNELS)
    else:
        number = made.randrange(10_000)
        channel = f"channel-{number}"
        if made.random() < 0.9:
            url += f"&channel_id={number}"
    return auction, bidder, _price(made), channel, url, at, _word(made, 5, 20)
