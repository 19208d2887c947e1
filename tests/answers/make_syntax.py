"""Makes syntax_errors.json: what a PostgreSQL 15 says to wrong statements, by its SQLSTATE, message and position.

``python -m tests.answers.make_syntax "host=127.0.0.1 port=5499 user=postgres"``. The statements are those of
syntax_wrong.sql, and the right ones of syntax_trees.txt with tokens left out, put in, repeated or exchanged.
"""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path

import psycopg

from sql.syntax.lexing.lexer import tokenize

HERE = Path(__file__).parent
OWN = ("subscribe", "explain", "verify", "copy", "declare", "prepare", "execute", "with mutually", "create or replace")
WORDS = """select from where group by order limit offset ( ) , . * = < + - not and or in is null between like case when
then else end as on using join left cross natural lateral with distinct all union except any array [ ] :: 1 'x' a t
over values table only returning set default exists row cast extract interval at time zone collate desc""".split()  # noqa: SIM905


def mutated(sql: str, random_: random.Random) -> str:
    """The statement with one or two of its tokens changed."""
    parts = [sql[token.start : token.end] for token in tokenize(sql)[:-1]]
    for _ in range(random_.choice((1, 1, 2))):
        index = random_.randrange(len(parts))
        match random_.randrange(4):
            case 0 if len(parts) > 2:
                parts.pop(index)
            case 1:
                parts.insert(index, random_.choice(WORDS))
            case 2:
                parts[index] = random_.choice(WORDS)
            case _:
                parts.insert(index, random_.choice(parts))
    return " ".join(parts)


def answer(connection: psycopg.Connection, sql: str) -> tuple[str, int] | None:
    """Message and position of its syntax error, if any: the whole string is parsed before anything is divided."""
    before = "SELECT 1/0; "
    try:
        connection.execute(before + sql, prepare=False)  # type: ignore[arg-type]
    except psycopg.Error as error:
        if error.sqlstate == "42601" and error.diag.statement_position:
            return error.diag.message_primary or "", int(error.diag.statement_position) - len(before)
    return None


def main() -> None:
    random_ = random.Random(15)
    wrong = (HERE / "syntax_wrong.sql").read_text().splitlines()
    right = (HERE / "syntax_trees.txt").read_text().splitlines()[::3]
    seeds = [sql for sql in right if not sql.startswith(OWN) and "as of" not in sql]
    wrong += [mutated(random_.choice(seeds), random_) for _ in range(int(sys.argv[2]) if len(sys.argv) > 2 else 900)]
    answers = []
    with psycopg.connect(sys.argv[1], autocommit=True) as connection:
        for sql in dict.fromkeys(wrong):
            found = answer(connection, sql)
            if found is not None and found[0].startswith(("syntax error", "LIMIT")):
                answers.append([sql, *found])
    lines = ",\n".join(json.dumps(entry) for entry in answers)
    (HERE / "syntax_errors.json").write_text(f"[\n{lines}\n]\n")


if __name__ == "__main__":
    main()
