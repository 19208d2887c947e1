"""A reduce of your own: the spread of each group, its largest value less its smallest.

``docs/how-to/write-an-operator.md`` explains it.
"""

from __future__ import annotations

import numpy as np

from ivm.dataflow import Dataflow
from ivm.graph import Arrange, Gather, Input, Output, Reduce
from ivm.group_function import GroupFunction, Value


def spread(key: Value, group: list[tuple[Value, int]]) -> list[Value]:
    return [(group[-1][0][0] - group[0][0][0],)]


def main() -> list[str]:
    flow = Dataflow()
    table = flow.add(Input(width=2))
    by_key = flow.add(Arrange(table, Gather((0, 1)), key_width=1))
    view = flow.add(Output(flow.add(Reduce(by_key, GroupFunction(spread, out_width=1)))))
    flow.hydrate()
    said = []
    for time, row, diff in [(1, (7, 3), 1), (2, (7, 10), 1), (3, (8, 5), 1), (4, (7, 3), -1), (5, (7, 10), -1)]:
        flow.feed(table, np.array([row]), time, np.array([diff]))
        flow.step()
        changes = flow.changes(view)
        rows = zip(changes.rows.tolist(), changes.diffs.tolist(), strict=True)
        said.append(f"at {time}: " + ", ".join(f"{'+' if d > 0 else '-'}{tuple(r)}" for r, d in rows))
    return said


if __name__ == "__main__":
    print("\n".join(main()))
