"""What pages memory is made of.

numpy asks the system for huge pages where an array takes 4 MiB or more. Large blocks here are written from end to end
once, and often do not live longer than a pass: that is no faster with huge pages, and to find and clear one costs far
more than the small ones of its size, above all where the machine is a virtual one and its host has to provide it (2.6
GB of small pages a second there, 0.4 GB of huge ones). Searches in large layers gain 1 to 2 % by huge pages.
"""

from __future__ import annotations

from numpy._core import multiarray


def small_pages() -> None:
    """Lets numpy's arrays be of small pages from now on, in the whole process."""
    multiarray._set_madvise_hugepage(False)  # type: ignore[attr-defined]
