"""Servers as processes of their own whose modules are imported already: they are forked from one that has done it.

Importing is most of a start, loading kernels comes next, and the tests start dozens. A forked server is given what a
started one is: flags, environment and a pipe for its standard error; then ``main`` of ``server`` or of another module
runs.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import queue
import random
import select
import signal
import socket
import subprocess
import sys
import threading
from functools import cache
from typing import Any, Final

from tests.support.paths import ROOT

_IMPORTED: Final = (
    "server", "sql.admission.start", "sql.cluster.cluster", "sql.pgwire.listener", "sql.session.door",
    "sql.session.sources", "sql.session.warm", "storage.outbound",
)  # fmt: skip
_MOST: Final = 1 << 20
"""Bytes of a message."""


class Forked:
    """A server's process, with what the tests use of ``subprocess.Popen``."""

    def __init__(self, nursery: _Nursery, module: str, flags: list[str]) -> None:
        out, into = os.pipe()
        self.stderr = os.fdopen(out, encoding="utf-8", errors="replace")
        self._ended = threading.Event()
        self.returncode: int | None = None
        try:
            self.pid = nursery.fork(self, {"module": module, "flags": flags, "environment": dict(os.environ)}, into)
        finally:
            os.close(into)

    def end(self, status: int) -> None:
        self.returncode = os.waitstatus_to_exitcode(status)
        self._ended.set()

    def poll(self) -> int | None:
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        if not self._ended.wait(timeout):
            raise subprocess.TimeoutExpired("a forked server", timeout or 0)
        assert self.returncode is not None
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.returncode is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def forked(module: str, *flags: str) -> Forked:
    """``python -m module flags``, but forked; in the repository's folder."""
    return Forked(_nursery(), module, list(flags))


@cache
def _nursery() -> _Nursery:
    return _Nursery()


class _Nursery:
    """The process that forks. It ends, and its servers with it, when this one has ended."""

    def __init__(self) -> None:
        self._socket, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        command = [sys.executable, "-m", "tests.support.nursery", str(other.fileno())]
        self._process = subprocess.Popen(command, cwd=ROOT, pass_fds=[other.fileno()], stdin=subprocess.DEVNULL)
        other.close()
        self._lock, self._pids = threading.Lock(), queue.SimpleQueue[int]()
        self._children: dict[int, Forked] = {}
        threading.Thread(target=self._listen, daemon=True).start()

    def fork(self, child: Forked, what: dict[str, Any], stderr: int) -> int:
        with self._lock:
            socket.send_fds(self._socket, [json.dumps(what).encode()], [stderr])
            pid = self._pids.get(timeout=100)
            self._children[pid] = child
        return pid

    def _listen(self) -> None:
        while data := self._socket.recv(_MOST):
            pid, status = json.loads(data)
            if status is None:
                self._pids.put(pid)
            else:
                with self._lock:  # until its process knows it
                    child = self._children.pop(pid)
                child.end(status)


def _serve(requests: socket.socket) -> None:
    """Fork a server for each request; tell of each end."""
    for module in _IMPORTED:
        importlib.import_module(module)
    importlib.import_module("sql.session.warm").load()
    gc.freeze()
    ended, told = os.pipe()
    os.set_blocking(told, False)
    signal.set_wakeup_fd(told)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    children: set[int] = set()
    while True:
        ready, _, _ = select.select([requests, ended], [], [])
        if ended in ready:
            os.read(ended, 1 << 16)
            for pid, status in _reaped():
                children.discard(pid)
                requests.send(json.dumps([pid, status]).encode())
        if requests in ready:
            data, descriptors, _, _ = socket.recv_fds(requests, _MOST, 1)
            if not data:
                break
            pid = os.fork()
            if not pid:
                _become(json.loads(data), descriptors[0], (requests.fileno(), ended, told))
            os.close(descriptors[0])
            children.add(pid)
            requests.send(json.dumps([pid, None]).encode())
    for pid in children:
        os.kill(pid, signal.SIGKILL)
    os._exit(0)  # extension modules look for leaks at the end


def _reaped() -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    try:
        while (child := os.waitpid(-1, os.WNOHANG))[0]:
            found.append(child)
    except ChildProcessError:
        pass
    return found


def _become(what: dict[str, Any], stderr: int, inherited: tuple[int, ...]) -> None:
    """The server itself; it does not return."""
    status = 1
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.dup2(stderr, 2)
        for descriptor in (stderr, *inherited):
            os.close(descriptor)
        os.environ.clear()
        os.environ.update(what["environment"])
        random.seed()
        gc.unfreeze()
        sys.argv = [what["module"], *what["flags"]]
        importlib.import_module(what["module"]).main()
        status = 0
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else 1
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(status)


if __name__ == "__main__":
    _serve(socket.socket(fileno=int(sys.argv[1])))
