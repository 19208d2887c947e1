"""The relations of schema ``freshet``: what a person may ask the server about itself.

Their rows are live: ``sql/session/own_relations.py`` computes them, and ``docs/relations.md`` tells what they mean.
"""

from __future__ import annotations

from typing import Final

from ivm.words import INT4, INT8, TEXT, TIMESTAMPTZ
from sql.catalog.catalog import Relation, RelationKind, TableColumn

VIEW_ERRORS: Final = Relation(
    13990, "freshet", "view_errors", RelationKind.SYSTEM,
    (TableColumn("view", TEXT, False), TableColumn("sqlstate", TEXT, False), TableColumn("message", TEXT, False),
     TableColumn("row", TEXT)),
)  # fmt: skip
HYDRATIONS: Final = Relation(
    13991, "freshet", "hydrations", RelationKind.SYSTEM,
    (TableColumn("view", TEXT, False), TableColumn("pid", INT4, False), TableColumn("phase", TEXT, False),
     TableColumn("operators", INT8), TableColumn("done", INT8), TableColumn("updates", INT8),
     TableColumn("behind", INT8), TableColumn("started", TIMESTAMPTZ, False)),
)  # fmt: skip
DICTIONARY: Final = Relation(
    13996, "freshet", "dictionary", RelationKind.SYSTEM,
    tuple(TableColumn(name, INT8, False) for name in ("living", "dead", "bytes", "sweeps", "swept")),
)  # fmt: skip
OWN_RELATIONS: Final = (VIEW_ERRORS, HYDRATIONS, DICTIONARY)
