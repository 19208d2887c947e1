"""Loads that Spark reads and encodes. They come back as files of sorted runs.

Executors turn rows into words, Spark shuffles them by hash, and executors sort each partition into runs
(``storage.load.executor``), in a folder shared with the server. The driver, this process, never holds a row of the
source. The server then interns the dictionary's entries and reads the runs. A value nearly always gets the id that the
executors proposed; otherwise the rows are remapped. Only the DataFrame API is used, so that ``local[*]``, ``spark://``
and ``sc://`` are interchangeable.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from functools import reduce
from pathlib import Path
from typing import Any, Final

from ivm.errors import SqlError
from ivm.words import row_width
from storage.cancel import Cancel
from storage.dictionary import Dictionary
from storage.load.columns import load_schema
from storage.load.entries import replace_ids, take_entries
from storage.load.executor import Encoding, FileReport, partitioner, read_entries, read_run, reports_of, sorter
from storage.load.progress import watched
from storage.load.rejects import Rejects
from storage.load.source import LoadSource, read_here
from storage.sorted_rows import Run
from storage.spark.blocks import RECORDS_DDL
from storage.spark.errors import spark_error
from storage.spark.session import SparkSession, tagged

_ROWS_PER_PART: Final = 1_000_000
_PLACES_PER_PART: Final = 4
"""Several per partition of Spark, to even out their sizes, since Spark assigns places by their hash."""
_UNKNOWN_PLACES: Final = 512


def read_with_spark(
    spark: SparkSession, source: LoadSource, dictionary: Dictionary, *, id_bits: int = 63, cancel: Cancel | None = None,
    rejects: Rejects | None = None, tell: Callable[[int], object] = lambda rows: None,
) -> Iterator[Run]:  # fmt: skip
    """``read_here`` by Spark: the same rows, as sorted runs.

    Files' paths have been checked before (``storage.load.paths``). ``id_bits``: see ``Dictionary``. ``cancel``: also
    stops Spark's jobs. ``tell``: called regularly, on another thread, with the number of rows that executors have read.
    Raises what ``read_here`` raises, 58000 if Spark is missing or fails, 57014.
    """
    count = source.check()
    scratch = Path(tempfile.mkdtemp(prefix="freshet-spark-", dir=spark.settings.shared))
    try:
        with spark as session, tagged(session, scratch.name, cancel or Cancel()), watched(scratch, tell):
            most = None if rejects is None else rejects.most
            reports = _job(session, source, dictionary.secret, id_bits, most, count, scratch)
        files = [report for report in reports if report.entries]
        batches = (batch for report in files for batch in read_entries(scratch, report))
        remap = None if any(report.clash for report in files) else take_entries(batches, dictionary)
        if remap is None:  # ids clash among executors (once in 2^63 pairs): only a single dictionary tells them apart
            yield from read_here(source, dictionary, rejects)
            return
        if rejects is not None:
            rejects.take([reject for report in reports for reject in report.rejects])
        width = row_width(load_schema(source.columns))
        for report in reports:
            if report.rows:
                run = read_run(scratch, report, width)
                replace_ids(run.rows, source.columns, remap)
                yield run
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _job(
    session: Any, source: LoadSource, secret: bytes, id_bits: int, most: int | None, count: int | None, out: Path
) -> list[FileReport]:
    """Runs the job and returns its reports. ``count``: the number of rows if known; otherwise Spark chooses its
    partitioning."""
    parts = None if count is None else max(1, -(-count // _ROWS_PER_PART))
    places = _UNKNOWN_PLACES if parts is None else _PLACES_PER_PART * parts
    columns = tuple(source.columns)
    encoding = Encoding(columns, secret, places, id_bits, most, str(out))
    try:
        encoded = [
            frame.mapInArrow(partitioner(encoding, decode), RECORDS_DDL)
            for frame, decode in source.frames(session, most is not None)
        ]
        stream = reduce(lambda one, other: one.unionAll(other), encoded)
        by_place = stream.repartition("place") if parts is None else stream.repartition(parts, "place")
        return reports_of(row[0] for row in by_place.mapInArrow(sorter(str(out)), "data string").collect())
    except SqlError:
        raise
    except Exception as error:
        raise spark_error(error) from error
