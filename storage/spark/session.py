"""The pyspark door: the one Spark session of a server, ``local[*]``, ``spark://`` or ``sc://``."""

from __future__ import annotations

import atexit
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, sleep
from typing import Any, Final

from ivm.errors import SqlError
from storage.cancel import Cancel
from storage.spark.errors import ConnectorError, spark_error
from storage.spark.java import java_home
from storage.spark.reach import check_reachable, own_address

_ROOT: Final = Path(__file__).resolve().parent.parent.parent
_BATCH_BYTES: Final = 1 << 26
"""The size of batches sent to Python: records with blocks of updates are large, and an Arrow array is limited to 2
GiB."""
CONNECT_TRIES: Final = 5
"""How often a Connect server is retried, in about 5 s."""
EXECUTOR_SECONDS: Final = 30.0
"""How long a cluster may take to give a new session its first executor."""


@dataclass(frozen=True, slots=True)
class SparkSettings:
    """``master``: in Spark's notation, ``sc://`` included. ``shared``: a folder that both executors and server see.

    ``cache``: where the Java shim is kept. ``memory``: of the driver, and of each executor of a cluster.
    ``idle_seconds``: how long an unused session is kept. Raises 22023 for an invalid master, or one that needs a shared
    folder and has none.
    """

    master: str = "local[*]"
    shared: Path | None = None
    cache: Path = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "freshet"
    memory: str = "1g"
    idle_seconds: float = 60.0

    def __post_init__(self) -> None:
        if not self.master.startswith(("local", "spark://", "sc://")):
            raise SqlError("22023", f'"{self.master}" is no Spark to connect to',
                           hint="Write local[*], spark://HOST:PORT or sc://HOST:PORT.")  # fmt: skip
        if self.shared is None and not self.master.startswith("local"):
            raise SqlError("22023", f"executors of {self.master} need a folder that they share with the server",
                           hint="Name it with --spark-shared DIR.")  # fmt: skip

    @property
    def remote(self) -> bool:
        """Whether the driver is that of a Spark Connect server."""
        return self.master.startswith("sc://")


class SparkSession:
    """The server's only Spark session: started on first use, stopped after a long idle time or at exit. Use it as a
    context."""

    def __init__(self, settings: SparkSettings | None = None) -> None:
        self.settings = settings or SparkSettings()
        self._lock = threading.Lock()
        self._session: Any = None
        self._users = 0
        self._doubtful = False
        self._timer: threading.Timer | None = None
        atexit.register(self.stop)

    def __enter__(self) -> Any:
        """Returns the session, starting it if needed. It lives at least as long as the context."""
        with self._lock:
            if self._timer is not None:
                self._timer.cancel()
            if self._session is not None and not _is_alive(self._session):
                self._stop_locked()  # its other users will get errors
            if self._session is None:
                self._session = _start(self.settings)
            self._users += 1
            return self._session

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        with self._lock:
            self._users -= 1
            if isinstance(error, SqlError) and error.sqlstate == "58000" and not isinstance(error, ConnectorError):
                self._doubtful = True
            if self._doubtful and not self._users:  # its Java or cluster may be gone: the next user reconnects
                self._stop_locked()
            elif not self._users:
                self._timer = threading.Timer(self.settings.idle_seconds, self._stop_if_idle)
                self._timer.daemon = True
                self._timer.start()

    @property
    def running(self) -> bool:
        """Whether Spark is running."""
        return self._session is not None

    def stop(self) -> None:
        """Stops Spark and its Java. The next use starts it again."""
        with self._lock:
            self._stop_locked()

    def _stop_if_idle(self) -> None:
        with self._lock:
            if not self._users:
                self._stop_locked()

    def _stop_locked(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._session is not None:
            session, self._session, self._doubtful = self._session, None, False
            _stop(session, self.settings.remote)


def frame_of(session: Any, table: Any) -> Any:
    """A DataFrame of an Arrow table. Timestamps without time zone remain so; by default Spark would read them as being
    in the session's zone."""
    from pyspark.sql.pandas.types import from_arrow_schema

    return session.createDataFrame(table, from_arrow_schema(table.schema, prefer_timestamp_ntz=True))


def parallelism(session: Any) -> int:
    """How many tasks the session runs at once, 1 if unknown (Spark Connect)."""
    context = getattr(session, "_sc", None)
    return 1 if context is None else int(context.defaultParallelism)


def task_name() -> str:
    """On an executor: a name of the running task that is the same when it is retried. Elsewhere: a constant."""
    from pyspark import TaskContext

    context = TaskContext.get()
    return "no-task" if context is None else f"{context.stageId()}-{context.partitionId()}"


def steady(session: Any) -> Any:
    """A session of the same Spark without adaptive query execution. Re-planning after each stage takes longer than a
    stage with little to do. A Spark Connect session is returned unchanged."""
    if not hasattr(session, "_jsparkSession"):
        return session
    found = session.newSession()
    found.conf.set("spark.sql.adaptive.enabled", "false")
    return found


def functions() -> Any:
    """``pyspark.sql.functions``, imported lazily; usable while a session exists."""
    from pyspark.sql import functions as found

    return found


def _start(settings: SparkSettings) -> Any:
    try:
        import pandas  # noqa: F401  (mapInArrow asks for it)
        from pyspark.sql import SparkSession as Session
    except ImportError as error:
        raise SqlError(
            "58000",
            "this server has no Spark",
            detail=str(error),
            hint="Install it with pip install 'freshet[spark]', or leave ENGINE spark out of the statement.",
        ) from error
    if not settings.master.startswith("local"):
        check_reachable(settings.master)
    builder = Session.builder.appName("freshet")
    builder = builder.remote(settings.master) if settings.remote else builder.master(settings.master)
    for key, value in _options(settings).items():
        builder = builder.config(key, value)
    with _environment(settings):
        try:
            session = builder.getOrCreate()
        except Exception as error:
            raise spark_error(error) from error
    if settings.master.startswith("spark://"):
        _await_executor(session, settings)
    if settings.remote:
        _give_up_soon(session)
    return session


def _give_up_soon(session: Any) -> None:
    """Makes an unresponsive Connect server an error within seconds; pyspark would try for ten minutes."""
    from pyspark.sql.connect.client.retries import DefaultPolicy

    session.client.set_retry_policies([DefaultPolicy(max_retries=CONNECT_TRIES, max_backoff=2000)])


def _await_executor(session: Any, settings: SparkSettings) -> None:
    """Waits for an executor: 58000 if the cluster gives us none. Spark itself would wait forever."""
    until = monotonic() + EXECUTOR_SECONDS
    status = session.sparkContext._jsc.sc()
    while status.getExecutorMemoryStatus().size() < 2:  # the driver is counted too
        if monotonic() > until:
            _stop(session, remote=False)
            raise SqlError(
                "58000",
                f"the Spark cluster {settings.master} gave no executor within {EXECUTOR_SECONDS:.0f} s",
                hint="See in its web UI whether it has workers with a free core and "
                f"{settings.memory} of memory (--spark-memory), and who uses them.",
            )
        sleep(0.1)


@contextmanager
def tagged(session: Any, tag: str, cancel: Cancel) -> Iterator[None]:
    """Tags the Spark jobs of this thread within the context, so that a cancel stops them: 57014."""
    remote = not hasattr(session, "_jsparkSession")
    # A classic session's own tags are per thread, so that other threads could not interrupt by them.
    jobs = session if remote else session.sparkContext
    add, remove = (jobs.addTag, jobs.removeTag) if remote else (jobs.addJobTag, jobs.removeJobTag)
    stop = jobs.interruptTag if remote else jobs.cancelJobsWithTag
    if not remote:
        jobs.setInterruptOnCancel(True)
    with cancel.stopping(lambda: stop(tag)):
        add(tag)
        try:
            yield
        finally:
            remove(tag)


def _options(settings: SparkSettings) -> dict[str, str]:
    options = {
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.legacy.parquet.nanosAsLong": "true",
        "spark.sql.caseSensitive": "true",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
        "spark.sql.execution.arrow.maxBytesPerBatch": str(_BATCH_BYTES),
        "spark.sql.files.ignoreCorruptFiles": "false",
        "spark.sql.parquet.compression.codec": "lz4_raw",
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    }
    if not settings.remote:
        options |= {
            "spark.driver.memory": settings.memory,
            "spark.driver.defaultJavaOptions": f"-Dderby.stream.error.file={os.devnull}",  # otherwise ./derby.log
            "spark.executorEnv.PYTHONPATH": python_path(),
            "spark.log.level": "OFF",
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
        }
        address = own_address(settings.master)
        options |= {"spark.driver.host": address, "spark.driver.bindAddress": address}
    if settings.master.startswith("spark://"):
        options["spark.executor.memory"] = settings.memory
    return options


def python_path() -> str:
    """Where executors on this machine find the package; on other machines it must be installed."""
    return os.pathsep.join(filter(None, [str(_ROOT), os.environ.get("PYTHONPATH")]))


@contextmanager
def _environment(settings: SparkSettings) -> Iterator[None]:
    """Sets the environment that Spark's launcher reads, while it starts."""
    before = dict(os.environ)
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    if not settings.remote:
        os.environ["JAVA_HOME"] = str(java_home(settings.cache))
        os.environ["SPARK_LOCAL_IP"] = own_address(settings.master)
    try:
        yield
    finally:
        for key in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "JAVA_HOME", "SPARK_LOCAL_IP"):
            os.environ.pop(key, None)
            if key in before:
                os.environ[key] = before[key]


def _stop(session: Any, remote: bool) -> None:
    gateway = None if remote else session.sparkContext._gateway
    with suppress(Exception):  # its Java, or the Spark Connect server, may have died: then nothing is left to stop
        session.stop()
    if gateway is not None:  # a stopped session leaves its Java running, and pyspark would reuse it
        from pyspark import SparkContext

        gateway.shutdown()
        java = getattr(gateway, "proc", None)
        if java is not None:
            with suppress(BrokenPipeError):
                java.stdin.close()
            java.wait(timeout=20)
        SparkContext._gateway = SparkContext._jvm = None
        SparkContext._active_spark_context = None  # it is not reset when its Java has died
        type(session)._instantiatedSession = type(session)._activeSession = None


def _is_alive(session: Any) -> bool:
    """Whether the session's own Java is running; unknown for Spark Connect."""
    context = getattr(session, "_sc", None)
    java = None if context is None else getattr(context._gateway, "proc", None)
    return java is None or java.poll() is None
