"""What may stop the work of a thread from within: a cancel, too little memory, or that it belongs on another thread.

Whoever gives a thread work says so once (``stoppable``); what takes long asks between its parts (``poll``), and what
takes much memory asks for it first (``room``, ``Taking``). Neither is an error of a row: an evaluator lets ``Stopped``
pass, and the end of ``stoppable`` raises its error.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from time import perf_counter
from traceback import clear_frames
from types import TracebackType
from typing import Final, Protocol, TypeVar

from ivm.budget import NO_BUDGET, Budget, Share, out_of_memory
from ivm.errors import SqlError
from ivm.system_memory import give_back

T = TypeVar("T")
_LARGE: Final = 32 << 20


class Stop(Protocol):
    """What a ``threading.Event`` is to those who only ask."""

    def is_set(self) -> bool: ...


class Stopped(Exception):
    """Ends the work of a thread. Caught by ``stoppable`` only, which raises ``error``."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error: Exception | None = error

    def reason(self) -> Exception:
        """The error, once. This then refers neither to it, whose context it will be, nor to the frames of the work:
        they would keep what that held."""
        error, self.error, self.__traceback__ = self.error, None, None
        assert error is not None
        return error


class _Limits(threading.local):
    """``elsewhere``: what to raise after ``until``, a time of ``perf_counter``, if the work may still move."""

    cancel: Stop | None = None
    budget: Budget = NO_BUDGET
    large: bool = False
    """Whether much memory was taken, which is to be given back to the system."""
    until: float = math.inf
    elsewhere: Callable[[], Exception | None] | None = None


_LIMITS = _Limits()


class stoppable:  # noqa: N801 - a context, as contextlib's are
    """In this context, the thread's work ends with 57014 once ``cancel`` is set, and takes memory from ``budget``."""

    __slots__ = ("_before", "_now")

    def __init__(self, cancel: Stop | None, budget: Budget = NO_BUDGET) -> None:
        self._now = cancel, budget

    def __enter__(self) -> None:
        self._before = _LIMITS.cancel, _LIMITS.budget
        _LIMITS.cancel, _LIMITS.budget = self._now

    def __exit__(self, kind: object, error: BaseException | None, trace: TracebackType | None) -> None:
        limits = _LIMITS
        limits.cancel, limits.budget = self._before
        if isinstance(error, Stopped):
            clear_frames(trace)
        elif isinstance(error, SqlError) and limits.cancel is None:
            error.__traceback__ = error.__context__ = None  # frames of the work often refer to the error
        if limits.large and limits.budget is NO_BUDGET:
            limits.large = False
            give_back()
        if isinstance(error, Stopped):
            del trace
            raise error.reason() from None


class movable:  # noqa: N801
    """In this context, work that takes longer ends with what ``elsewhere`` returns; None: it must go on here."""

    __slots__ = ("_before", "_elsewhere", "_seconds")

    def __init__(self, seconds: float, elsewhere: Callable[[], Exception | None]) -> None:
        self._seconds, self._elsewhere = seconds, elsewhere

    def __enter__(self) -> None:
        self._before = _LIMITS.until, _LIMITS.elsewhere
        _LIMITS.until, _LIMITS.elsewhere = perf_counter() + self._seconds, self._elsewhere

    def __exit__(self, kind: object, error: BaseException | None, trace: TracebackType | None) -> None:
        _LIMITS.until, _LIMITS.elsewhere = self._before
        if isinstance(error, Stopped):
            clear_frames(trace)
            del trace
            raise error.reason() from None


def may_end() -> bool:
    """Whether something may end the thread's work."""
    return _LIMITS.cancel is not None


def stay() -> None:
    """From now on the work has had effects, so it must go on where it is."""
    _LIMITS.until = math.inf


def may_move() -> bool:
    """Whether the work is on a thread that it should leave if it is long."""
    return _LIMITS.until != math.inf


def move() -> None:
    """The work is about to take long: raises Stopped if it may move to another thread."""
    limits = _LIMITS
    limits.until = math.inf
    error = None if limits.elsewhere is None else limits.elsewhere()
    if error is not None:
        raise Stopped(error)


def poll() -> None:
    """Raises Stopped if the thread's work is to end. Cost: a third of a microsecond."""
    limits = _LIMITS
    if limits.cancel is not None and limits.cancel.is_set():
        raise Stopped(SqlError("57014", "canceling statement due to user request"))
    if limits.until != math.inf and perf_counter() > limits.until:
        move()


def polled(items: Iterable[T], every: int = 4096) -> Iterator[T]:
    """The items, with a ``poll`` after each ``every`` of them."""
    left = every
    for item in items:
        yield item
        left -= 1
        if not left:
            poll()
            left = every


def room(size: int) -> None:
    """Raises Stopped (53200) if ``size`` bytes more do not fit the thread's budget."""
    budget = _LIMITS.budget
    _LIMITS.large |= size >= _LARGE
    if budget.limit and size > budget.limit - budget.taken:
        raise Stopped(out_of_memory(budget.limit, size <= budget.limit))


class Taking:
    """Memory that a part of the thread's work takes, bit by bit, and gives back together."""

    __slots__ = ("_share", "_step", "_waiting")

    def __init__(self, step: int = 1 << 20) -> None:
        self._share = Share(_LIMITS.budget)
        self._step = step
        self._waiting = 0

    def add(self, size: int) -> None:
        """Takes ``size`` bytes more. Raises Stopped (53200)."""
        self._waiting += size
        if self._waiting >= self._step:
            _LIMITS.large |= self._share.size + self._waiting >= _LARGE
            error = self._share.hold(self._share.size + self._waiting)
            self._waiting = 0
            if error is not None:
                raise Stopped(error)

    def release(self) -> None:
        """Gives all of it back."""
        self._share.release()
        self._waiting = 0


@contextmanager
def taken(size: int) -> Iterator[None]:
    """Holds ``size`` bytes in this context. Raises Stopped (53200)."""
    taking = Taking(1)
    taking.add(size)
    try:
        yield
    finally:
        taking.release()
