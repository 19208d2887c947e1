"""The page size of numpy's memory.

numpy asks the system for huge pages for arrays of 4 MiB or more. Large blocks here are written once from end to end and
often live no longer than a pass. Huge pages do not make that faster, and finding and clearing one costs far more than
the same memory in small pages, above all in a virtual machine whose host has to provide it (2.6 GB/s of small pages
there, 0.4 GB/s of huge ones). Searches in large layers gain 1 to 2 % from huge pages.
"""

from __future__ import annotations

from numpy._core import multiarray


def small_pages() -> None:
    """Makes numpy use small pages from now on, in the whole process."""
    multiarray._set_madvise_hugepage(False)  # type: ignore[attr-defined]
