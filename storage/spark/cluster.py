"""A local Spark cluster from pip's pyspark: a master, workers and optionally a Spark Connect server.

python -m storage.spark.cluster [--workers N] [--cores N] [--memory 1g] [--connect] [--port PORT]

For experiments and tests; ``make cluster`` starts it. All its processes end with this program, however that ends.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from time import monotonic, sleep
from typing import Final

from ivm.errors import SqlError
from storage.spark.java import java_home
from storage.spark.reach import check_reachable
from storage.spark.session import SparkSettings, python_path

START_SECONDS: Final = 60.0
END_SECONDS: Final = 10.0
_HOST: Final = "127.0.0.1"
_DEPLOY: Final = "org.apache.spark.deploy"
_CONNECT: Final = "org.apache.spark.sql.connect.service.SparkConnectServer"
_WATCH: Final = """
import os, shutil, signal, sys, time

def lives(group):
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True

running = set()
for line in sys.stdin:  # until the program that writes has ended, however it did
    running ^= {int(line)}
for number in (signal.SIGTERM, signal.SIGKILL):
    for group in list(running):
        try:
            os.killpg(group, number)
        except ProcessLookupError:
            running.discard(group)
    end = time.monotonic() + float(sys.argv[2])
    while number == signal.SIGTERM and time.monotonic() < end and any(map(lives, running)):
        time.sleep(0.05)
shutil.rmtree(sys.argv[1], ignore_errors=True)
"""
"""A watchdog program that kills the cluster's processes when its parent ends. It reads process group ids from stdin:
the first time an id means started, the second time ended."""


def spark_home() -> Path:
    """The folder of pip's pyspark. 58000 if it is missing."""
    spec = find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise SqlError("58000", "there is no pyspark", hint="Install it with pip install 'freshet[spark]'.")
    return Path(spec.origin).parent


@dataclass(slots=True)
class LocalCluster:
    """Use it as a context. ``url``, ``web``, ``connect_url`` are set once it has started.

    ``cores``, ``memory``: of each worker, memory in Spark's notation. ``port``: of the master, 0 for any free one.
    """

    workers: int = 2
    cores: int = 1
    memory: str = "1g"
    connect: bool = False
    port: int = 0
    url: str = ""
    web: str = ""
    connect_url: str = ""
    folder: Path = field(default_factory=lambda: Path(tempfile.mkdtemp(prefix="freshet-cluster-")))
    _started: list[subprocess.Popen[bytes]] = field(default_factory=list)
    _watch: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> LocalCluster:
        command = [sys.executable, "-c", _WATCH, str(self.folder), str(END_SECONDS)]
        self._watch = subprocess.Popen(command, stdin=subprocess.PIPE, bufsize=0, start_new_session=True)
        try:
            self._start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *exception: object) -> None:
        self.stop()

    def _start(self) -> None:
        log = self._run("master", f"{_DEPLOY}.master.Master", "--host", _HOST, "--port", self.port, "--webui-port", 0)
        self.url = self._said(log, r"Starting Spark master at (spark://\S+)")
        self.web = self._said(log, r"started at (http://\S+)")
        logs = [
            self._run(f"worker{i}", f"{_DEPLOY}.worker.Worker", "--host", _HOST, "--webui-port", 0,
                      "--cores", self.cores, "--memory", self.memory, "--work-dir", self.folder / f"work{i}", self.url)
            for i in range(self.workers)
        ]  # fmt: skip
        for log in logs:
            self._said(log, r"(Successfully registered with master)")
        if self.connect:
            self._start_connect()

    @property
    def worker_pids(self) -> list[int]:
        """The workers' process ids. Executors are their children."""
        return [program.pid for program in self._started[1 : 1 + self.workers]]

    @contextmanager
    def connected(self) -> Iterator[str]:
        """Runs a Spark Connect server within the context and yields its sc:// URL. It takes all cores of the
        cluster."""
        try:
            yield self._start_connect()
        finally:
            self._end([self._started.pop()])

    def _start_connect(self) -> str:
        options = {
            "spark.connect.grpc.binding.address": _HOST,
            "spark.connect.grpc.binding.port": "0",
            "spark.driver.host": _HOST,
            "spark.driver.bindAddress": _HOST,
            "spark.driver.memory": self.memory,
            "spark.executor.memory": self.memory,
            "spark.executorEnv.PYTHONPATH": python_path(),
            "spark.ui.enabled": "false",
        }
        flags = [part for key, value in options.items() for part in ("--conf", f"{key}={value}")]
        submit = ("org.apache.spark.deploy.SparkSubmit", "--class", _CONNECT, "--master", self.url)
        log = self._run("connect", *submit, *flags, "spark-internal")
        port = self._said(log, r"Spark Connect server started at: \S*?:(\d+)")
        self.connect_url = f"sc://{_HOST}:{port}"
        check_reachable(self.connect_url)
        return self.connect_url

    def _run(self, name: str, *command: object) -> Path:
        """Starts one of Spark's programs; returns the file that receives its output."""
        home = spark_home()
        environment = os.environ | {
            "SPARK_HOME": str(home),
            "JAVA_HOME": str(java_home(SparkSettings().cache)),
            "SPARK_LOCAL_IP": _HOST,
            "SPARK_LOCAL_DIRS": str(self.folder / "local"),
            "SPARK_DAEMON_MEMORY": self.memory if name == "connect" else "256m",
            "PYSPARK_PYTHON": sys.executable,
            "PYTHONPATH": python_path(),
        }
        log = self.folder / f"{name}.log"
        with log.open("wb") as out:
            started = subprocess.Popen([home / "bin" / "spark-class", *map(str, command)], stdin=subprocess.DEVNULL,
                                       stdout=out, stderr=out, env=environment, start_new_session=True)  # fmt: skip
        self._started.append(started)
        self._note(started)
        return log

    def _said(self, log: Path, pattern: str) -> str:
        until = monotonic() + START_SECONDS
        running = self._started
        while True:
            text = log.read_text(errors="replace")
            if match := re.search(pattern, text):
                return match[1]
            ended = [started for started in running if started.poll() is not None]
            if ended or monotonic() > until:
                raise SqlError("58000", f"the Spark cluster did not start: {log.stem}", detail=text[-2000:])
            sleep(0.05)

    def stop(self) -> None:
        """Ends all processes, executors included, and deletes the files."""
        self._end(self._started)
        self._started.clear()
        if self._watch is not None:
            assert self._watch.stdin is not None
            self._watch.stdin.close()
            self._watch.wait()
            self._watch = None
        shutil.rmtree(self.folder, ignore_errors=True)

    def _end(self, programs: Sequence[subprocess.Popen[bytes]]) -> None:
        for program in reversed(programs):
            program.terminate()
        for program in programs:
            try:
                program.wait(END_SECONDS)
            except subprocess.TimeoutExpired:
                program.kill()
                program.wait()
        for program in programs:
            self._note(program)

    def _note(self, program: subprocess.Popen[bytes]) -> None:
        """Tells the watchdog that a process has started, or has ended."""
        assert self._watch is not None, "used as a context"
        assert self._watch.stdin is not None
        self._watch.stdin.write(b"%d\n" % program.pid)


def main(given: Sequence[str] | None = None) -> None:
    """``make cluster``."""
    parser = argparse.ArgumentParser(prog="python -m storage.spark.cluster")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--cores", type=int, default=1, help="of each worker (default: %(default)s)")
    parser.add_argument("--memory", default="1g", help="of each worker (default: %(default)s)")
    parser.add_argument("--connect", action="store_true", help="start a Spark Connect server too, on all its cores")
    parser.add_argument("--port", type=int, default=0, help="of the master (default: any free one)")
    options = parser.parse_args(given)
    ended = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ended.set())
    try:
        with LocalCluster(options.workers, options.cores, options.memory, options.connect, options.port) as cluster:
            print(f"a Spark cluster of {options.workers} workers: {cluster.url}, its web UI: {cluster.web}")
            if options.connect:
                print(f"Spark Connect: {cluster.connect_url}")
            url = cluster.connect_url or cluster.url
            print(f"for example: make server FLAGS='--files DIR --spark {url} --spark-shared /tmp/freshet-shared'")
            print("Ctrl-C ends it", flush=True)
            ended.wait()
    except SqlError as error:
        sys.exit("\n".join(filter(None, (error.message, error.detail, error.hint))))


if __name__ == "__main__":
    main()
