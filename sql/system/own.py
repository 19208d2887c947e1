"""The relations of schema ``freshet``, in which the server reports on itself.

Their rows are live: ``sql/session/own_relations.py`` computes them, and ``docs/reference/relations.md`` documents them.
"""

from __future__ import annotations

from typing import Final

from ivm.words import BOOL, FLOAT8, INT4, INT8, INTERVAL, TEXT, TIMESTAMPTZ, Kind, SqlType
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
     TableColumn("behind", INT8), TableColumn("started", TIMESTAMPTZ, False), TableColumn("by", TEXT),
     TableColumn("step", TEXT)),
)  # fmt: skip
DICTIONARY: Final = Relation(
    13996, "freshet", "dictionary", RelationKind.SYSTEM,
    tuple(TableColumn(name, INT8, False) for name in ("living", "dead", "bytes", "sweeps", "swept")),
)  # fmt: skip
_NAMES: Final = SqlType(Kind.ARRAY, element=TEXT)
ARRANGEMENTS: Final = Relation(
    13992, "freshet", "arrangements", RelationKind.SYSTEM,
    (TableColumn("operator_id", INT8, False), TableColumn("name", TEXT, False), TableColumn("relation", TEXT),
     TableColumn("key", _NAMES, False), TableColumn("reads", _NAMES, False), TableColumn("in_loop", BOOL, False),
     TableColumn("records", INT8, False), TableColumn("size", INT8, False), TableColumn("users", _NAMES, False)),
)  # fmt: skip
VIEWS: Final = Relation(
    13993, "freshet", "views", RelationKind.SYSTEM,
    (TableColumn("view", TEXT, False), TableColumn("status", TEXT, False), TableColumn("hydrated", BOOL, False),
     TableColumn("records", INT8), TableColumn("operators", INT8), TableColumn("shared", INT8),
     TableColumn("size", INT8), TableColumn("own_size", INT8)),
)  # fmt: skip
WORKERS: Final = Relation(
    13997, "freshet", "workers", RelationKind.SYSTEM,
    (TableColumn("worker", INT4, False), TableColumn("parts", INT8, False), TableColumn("cpu_ms", INT8, False)),
)  # fmt: skip
LOADS: Final = Relation(
    13980, "freshet", "loads", RelationKind.SYSTEM,
    (TableColumn("load_id", TEXT, False), TableColumn("relation", TEXT, False), TableColumn("source", TEXT, False),
     TableColumn("engine", TEXT, False), TableColumn("pid", INT4), TableColumn("state", TEXT, False),
     TableColumn("rows", INT8, False), TableColumn("rows_total", INT8), TableColumn("rejects", INT8, False),
     TableColumn("epoch", INT8), TableColumn("started", TIMESTAMPTZ, False), TableColumn("finished", TIMESTAMPTZ),
     TableColumn("error", TEXT)),
)  # fmt: skip
REJECTS: Final = Relation(
    13981, "freshet", "rejects", RelationKind.SYSTEM,
    (TableColumn("load_id", TEXT, False), TableColumn("relation", TEXT, False), TableColumn("file", TEXT),
     TableColumn("line", INT8), TableColumn("column_name", TEXT), TableColumn("text", TEXT, False),
     TableColumn("sqlstate", TEXT, False), TableColumn("reason", TEXT, False)),
)  # fmt: skip
SINKS: Final = Relation(
    13986, "freshet", "sinks", RelationKind.SYSTEM,
    (TableColumn("sink", TEXT, False), TableColumn("relation", TEXT, False), TableColumn("uri", TEXT, False),
     TableColumn("format", TEXT, False), TableColumn("envelope", TEXT, False), TableColumn("state", TEXT, False),
     TableColumn("epoch", INT8), TableColumn("lag", INTERVAL), TableColumn("generation", INT8),
     TableColumn("version", INT8), TableColumn("files", INT8, False), TableColumn("rows", INT8, False),
     TableColumn("bytes", INT8, False), TableColumn("error", TEXT)),
)  # fmt: skip
STEPS: Final = Relation(
    13989, "freshet", "steps", RelationKind.SYSTEM,
    (TableColumn("latest", INT8, False), TableColumn("of", INT8, False),
     *(TableColumn(name, FLOAT8, False) for name in ("p50_us", "p99_us", "longest_us"))),
)  # fmt: skip
SOURCES: Final = Relation(
    13987, "freshet", "sources", RelationKind.SYSTEM,
    (TableColumn("source", TEXT, False), TableColumn("table", TEXT, False), TableColumn("system", TEXT, False),
     TableColumn("state", TEXT, False), TableColumn("since", TIMESTAMPTZ, False), TableColumn("batch", INT8),
     TableColumn("rows", INT8, False), TableColumn("committed", TIMESTAMPTZ), TableColumn("lag", INTERVAL),
     TableColumn("error", TEXT), TableColumn("detail", TEXT), TableColumn("failed", TIMESTAMPTZ),
     TableColumn("failures", INT4, False)),
)  # fmt: skip
SPARK_JOBS: Final = Relation(
    13988, "freshet", "spark_jobs", RelationKind.SYSTEM,
    (TableColumn("view", TEXT, False), TableColumn("job", INT8, False), TableColumn("started", TIMESTAMPTZ, False),
     *(TableColumn(name, INT8, False) for name in (
         "milliseconds", "epoch", "commits", "updates", "parts_touched", "parts_held", "rows_read", "bytes_read",
         "rows_written", "bytes_written")),
     TableColumn("error", TEXT)),
)  # fmt: skip
OWN_RELATIONS: Final = (
    VIEW_ERRORS,
    HYDRATIONS,
    ARRANGEMENTS,
    VIEWS,
    DICTIONARY,
    STEPS,
    WORKERS,
    LOADS,
    REJECTS,
    SINKS,
    SOURCES,
    SPARK_JOBS,
)
