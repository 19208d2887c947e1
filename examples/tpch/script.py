"""TPC-H's tables, queries and files."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

HERE: Final = Path(__file__).parent
TABLES: Final = ("region", "nation", "supplier", "customer", "part", "partsupp", "orders", "lineitem")


def statements(name: str) -> list[str]:
    """A script's statements, without their comments."""
    lines = (HERE / name).read_text().splitlines()
    text = "\n".join(line for line in lines if not line.startswith("--"))
    return [s.strip() for s in text.split(";") if s.strip()]


def views() -> dict[str, str]:
    """The 22 statements, by the view's name."""
    return {s.split()[3]: s for s in statements("views.sql")}


def make_files(scale: float, folder: Path) -> None:
    """The eight tables as Parquet files, unless they are there."""
    if all((folder / f"{name}.parquet").exists() for name in TABLES):
        return
    folder.mkdir(parents=True, exist_ok=True)
    maker = Path(sys.executable).with_name("tpchgen-cli")
    subprocess.run([maker, "parquet", "-s", f"{scale:g}", f"--output-dir={folder}"], check=True)
