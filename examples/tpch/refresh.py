"""Rounds of change: inserts some orders with their items and deletes others, after TPC-H's refresh functions.

The same statements run on any database, so that another one can check the results.
"""

from __future__ import annotations

from typing import Final

SPREAD: Final = 500
"""An order in so many is in a round."""
BEYOND: Final = 1_000_000_000
"""New orders' keys are old ones' plus this times the round."""
ORDERS: Final = (
    "o_custkey, o_orderstatus, o_totalprice, o_orderdate, o_orderpriority, o_clerk, o_shippriority, o_comment"
)
ITEMS: Final = (
    "l_partkey, l_suppkey, l_linenumber, l_quantity, l_extendedprice, l_discount, l_tax, l_returnflag, l_linestatus,"
    " l_shipdate, l_commitdate, l_receiptdate, l_shipinstruct, l_shipmode, l_comment"
)


def comes(number: int) -> tuple[str, ...]:
    """The statements that insert the round's new orders: copies of old ones under new keys."""
    key, chosen = BEYOND * number, f"{SPREAD} = {number * 37 % SPREAD}"
    return (
        f"INSERT INTO orders SELECT o_orderkey + {key}, {ORDERS} FROM orders"
        f" WHERE o_orderkey < {BEYOND} AND o_orderkey % {chosen}",
        f"INSERT INTO lineitem SELECT l_orderkey + {key}, {ITEMS} FROM lineitem"
        f" WHERE l_orderkey < {BEYOND} AND l_orderkey % {chosen}",
    )


def goes(number: int) -> tuple[str, ...]:
    """The statements that delete other orders, both original ones and some inserted earlier."""
    chosen = f"{SPREAD} = {number * 61 % SPREAD}"
    return (f"DELETE FROM lineitem WHERE l_orderkey % {chosen}", f"DELETE FROM orders WHERE o_orderkey % {chosen}")


def changes(number: int) -> tuple[str, ...]:
    """Corrections: prices of some items, and addresses of some customers."""
    return (
        f"UPDATE lineitem SET l_discount = 0.10 - l_discount WHERE l_orderkey % {SPREAD} = {number * 89 % SPREAD}",
        f"UPDATE customer SET c_acctbal = -c_acctbal, c_nationkey = (c_nationkey + 1) % 25"
        f" WHERE c_custkey % {SPREAD} = {number * 17 % SPREAD}",
    )
