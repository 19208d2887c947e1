"""The records that Spark moves between the parts of a plan's fragments, and their frames.

A record is a block of updates for a port of a part, with what it waits for (``planner.distributed.rounds.Due``), or one
of two kinds that belong to no port: a *note* tells a task what waits somewhere (``planner.distributed.multi_step``), a
*report* tells the driver what a step has done to a part. Spark moves blocks without knowing their contents.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

import pyarrow as pa

from ivm.trace.batch import Block
from planner.distributed.rounds import Due
from storage.spark.blocks import encode_cells, encoded_words, view_block

FRAME: Final = "due string, fragment int, port int, part int, vector long, block binary, attached binary"
_SCHEMA: Final = pa.schema(
    [
        ("due", pa.string()), ("fragment", pa.int32()), ("port", pa.int32()), ("part", pa.int32()),
        ("vector", pa.int64()), ("block", pa.binary()), ("attached", pa.binary()),
    ]
)  # fmt: skip
RECORD_BYTES: Final = 1 << 18
"""The approximate size of a record: Spark checks its memory only every hundred records."""
REPORTS: Final = "report"
"""What reports wait for: the driver."""
_BATCH_BYTES: Final = 1 << 23
_NOTE: Final = -1
_REPORT: Final = -2
_NOTHING: Final = Block(1, 1)


class Record(NamedTuple):
    """A row of ``FRAME`` with its block not encoded yet; ``due`` is also the name of the folder that holds it.

    ``port``: of what a node owes, a negative number (``Due.port``). ``attached``: the values of the block's ids, if
    they travel with it. Of a note: ``port`` is the stage after which something waits, ``attached`` the ``Due``. Of a
    report: ``port`` is the fragment, ``vector`` the step, ``attached`` the report.
    """

    fragment: int
    port: int
    part: int
    vector: int
    block: Block
    attached: bytes | None = None

    @classmethod
    def note(cls, stage: int, due: Due, task: int) -> Record:
        """Tells a task what a stage has left."""
        return cls(_NOTE, stage, task, 0, _NOTHING, str(due).encode())

    @classmethod
    def report(cls, fragment: int, part: int, step: int, data: bytes) -> Record:
        """Tells the driver what a step has done to a part."""
        return cls(_REPORT, fragment, part, step, _NOTHING, data)

    @property
    def is_note(self) -> bool:
        return self.fragment == _NOTE

    @property
    def is_report(self) -> bool:
        return self.fragment == _REPORT

    @property
    def due(self) -> Due:
        """What updates wait for."""
        return Due.of(self.fragment, self.port, self.vector)

    @property
    def _folder(self) -> str:
        return str(self.due) if self.fragment >= 0 else REPORTS


def decoded(batches: Iterable[pa.RecordBatch]) -> Iterator[Record]:
    """The records of a frame's batches. Do not write to their blocks."""
    for batch in batches:
        heads = (batch.column(i).to_pylist() for i in range(1, 5))
        cells = batch.column(5), batch.column(6).to_pylist()
        for fragment, port, part, vector, block, attached in zip(*heads, *cells, strict=True):
            yield Record(fragment, port, part, vector, view_block(block.as_buffer()), attached)


def encoded(records: Iterable[Record]) -> Iterator[pa.RecordBatch]:
    """Records in batches of some megabytes."""
    some: list[Record] = []
    size = 0
    for record in records:
        some.append(record)
        size += 8 * encoded_words(record.block) + len(record.attached or b"")
        if size >= _BATCH_BYTES:
            yield _batch(some)
            some, size = [], 0
    if some:
        yield _batch(some)


def _batch(records: list[Record]) -> pa.RecordBatch:
    *heads, blocks, attached = zip(*records, strict=True)
    columns = [[record._folder for record in records], *heads]
    arrays = [pa.array(column, f.type) for column, f in zip(columns, _SCHEMA, strict=False)]
    return pa.RecordBatch.from_arrays([*arrays, encode_cells(blocks), pa.array(attached, pa.binary())], schema=_SCHEMA)
