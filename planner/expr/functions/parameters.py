"""The names of functions' parameters, for arguments that are given by name."""

from __future__ import annotations

from typing import Final

Default = str | bool | int | None
REQUIRED: Final = None
_PATH: Final[dict[str, Default]] = {"target": REQUIRED, "path": REQUIRED, "vars": "{}", "silent": False}
_CHANGE: Final[dict[str, Default]] = {"jsonb_in": REQUIRED, "path": REQUIRED, "replacement": REQUIRED}
_POPULATE: Final[dict[str, Default]] = {"base": REQUIRED, "from_json": REQUIRED, "use_json_as_text": False}
_MOMENT: Final[dict[str, Default]] = dict.fromkeys(("year", "month", "mday", "hour", "min", "sec"), REQUIRED)
PARAMETERS: Final[dict[str, dict[str, Default]]] = {
    **{
        f"jsonb_path_{what}{suffix}": _PATH
        for what in ("exists", "match", "query", "query_array", "query_first")
        for suffix in ("", "_tz")
    },
    "jsonb_set": {**_CHANGE, "create_if_missing": True},
    "jsonb_set_lax": {**_CHANGE, "create_if_missing": True, "null_value_treatment": "use_json_null"},
    "jsonb_insert": {**_CHANGE, "insert_after": False},
    **{f"{prefix}_populate_record{suffix}": _POPULATE for prefix in ("json", "jsonb") for suffix in ("", "set")},
    "make_date": dict.fromkeys(("year", "month", "day"), REQUIRED),
    "make_time": dict.fromkeys(("hour", "min", "sec"), REQUIRED),
    "make_timestamp": _MOMENT,
    "make_timestamptz": {**_MOMENT, "timezone": REQUIRED},
    "make_interval": dict.fromkeys(("years", "months", "weeks", "days", "hours", "mins", "secs"), 0),
}
"""The names of parameters, with their defaults; those without one must be given."""
