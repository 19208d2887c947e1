"""Writes ``sql/system/rows/*.txt``: rows of PostgreSQL 15's catalogs about the functions, operators and casts that are
here too.

``python -m tests.answers.make_catalog 'dbname=oracle'`` (needs psycopg; not part of the tests)

A function or operator is here if a call of it binds; those that others name (a type's input function, an aggregate's
transition) come along. A file's first line has the names of its columns; the others are in the text format of COPY.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import psycopg

from ivm.errors import SqlError
from sql.bind.statement import bind_statement
from sql.system.pg_types import type_names
from tests.support.bind_fake import FakeCatalog

ROWS: Final = Path(__file__).parents[2] / "sql" / "system" / "rows"
POLYMORPHIC: Final = {
    "any": "int4", "anyelement": "int4", "anyarray": "_int4", "anynonarray": "int4", "anycompatible": "int4",
    "anycompatiblearray": "_int4", "anycompatiblenonarray": "int4", "anyrange": "int4range",
    "anymultirange": "int4multirange", "anycompatiblerange": "int4range", "anycompatiblemultirange": "int4multirange",
    "record": "record",
}  # fmt: skip
PROC: Final = """
SELECT p.oid, p.proname, p.prolang, p.procost, p.prorows, p.provariadic::oid, p.prosupport::oid, p.prokind,
  p.proisstrict, p.proretset, p.provolatile, p.proparallel, p.pronargdefaults, p.prorettype::oid,
  p.pronargs, p.proargtypes::oid[] AS proargtypes, p.proallargtypes::oid[], p.proargmodes::text[], p.proargnames,
  pg_get_expr(p.proargdefaults, 0) AS proargdefaults, p.prosrc, pg_get_function_arguments(p.oid) AS arguments,
  nullif(pg_get_function_identity_arguments(p.oid), pg_get_function_arguments(p.oid)) AS identity,
  pg_get_function_result(p.oid) AS result,
  obj_description(p.oid, 'pg_proc') AS description, a.aggkind, a.aggnumdirectargs
FROM pg_proc p LEFT JOIN pg_aggregate a ON a.aggfnoid = p.oid
WHERE p.pronamespace = 'pg_catalog'::regnamespace ORDER BY p.oid
"""
UNASKED: Final = (
    "acldefault", "aclexplode", "contsel", "pg_get_expr", "enum_first", "enum_last", "enum_range", "ts_filter",
    "json_populate_recordset", "jsonb_populate_recordset",
)  # fmt: skip
"""Functions that are here, with arguments that the finder has no values of."""
RANGES: Final = """
SELECT rngtypid::oid, rngsubtype::oid, rngmultitypid::oid, rngcollation::oid, rngsubopc, rngcanonical::oid,
  rngsubdiff::oid FROM pg_range WHERE rngtypid < 16384 ORDER BY 1
"""
CONFIGURATIONS: Final = ("simple", "english")
SEARCH: Final = {
    "pg_ts_config": "SELECT oid, cfgname, cfgparser FROM pg_ts_config WHERE cfgname = ANY(%s)",
    "pg_ts_config_map": """
SELECT m.mapcfg, m.maptokentype, m.mapseqno, m.mapdict FROM pg_ts_config_map m JOIN pg_ts_config c ON c.oid = m.mapcfg
WHERE c.cfgname = ANY(%s) ORDER BY 1, 2, 3""",
    "pg_ts_dict": """
SELECT oid, dictname, dicttemplate, dictinitoption FROM pg_ts_dict
WHERE dictname = ANY(%s) OR dictname = 'english_stem' ORDER BY oid""",
    "pg_ts_parser": """
SELECT oid, prsname, prsstart::oid, prstoken::oid, prsend::oid, prsheadline::oid, prslextype::oid FROM pg_ts_parser
WHERE %s::text[] IS NOT NULL""",
    "pg_ts_template": """
SELECT oid, tmplname, tmplinit::oid, tmpllexize::oid FROM pg_ts_template
WHERE tmplname = ANY(%s) OR tmplname = 'snowball' ORDER BY oid""",
}
"""Text search: what the configurations that are here use."""
HIDDEN: Final = ("aggkind", "aggnumdirectargs")
"""Columns that only the finder needs."""
OPERATORS: Final = """
SELECT oid, oprname, oprkind, oprcanmerge, oprcanhash, oprleft::oid, oprright::oid, oprresult::oid, oprcom::oid,
  oprnegate::oid, oprcode::oid, oprrest::oid, oprjoin::oid, obj_description(oid, 'pg_operator') AS description
FROM pg_operator WHERE oid < 16384 ORDER BY oid
"""
CASTS: Final = (
    "SELECT oid, castsource::oid, casttarget::oid, castfunc::oid, castcontext, castmethod FROM pg_cast ORDER BY oid"
)
AGGREGATES: Final = """
SELECT aggfnoid::oid, aggkind, aggnumdirectargs, aggtransfn::oid, aggfinalfn::oid, aggcombinefn::oid,
  aggserialfn::oid, aggdeserialfn::oid, aggmtransfn::oid, aggminvtransfn::oid, aggmfinalfn::oid, aggfinalextra,
  aggmfinalextra, aggfinalmodify, aggmfinalmodify, aggsortop::oid, aggtranstype::oid, aggtransspace,
  aggmtranstype::oid, aggmtransspace, agginitval, aggminitval
FROM pg_aggregate ORDER BY aggfnoid::oid
"""
FAMILIES: Final = "SELECT oid, opfmethod, opfname FROM pg_opfamily ORDER BY oid"
CLASSES: Final = """
SELECT oid, opcmethod, opcname, opcfamily, opcintype::oid, opcdefault, opckeytype::oid FROM pg_opclass ORDER BY oid
"""
CLASS_OPERATORS: Final = """
SELECT oid, amopfamily, amoplefttype::oid, amoprighttype::oid, amopstrategy, amoppurpose, amopopr::oid, amopmethod,
  amopsortfamily FROM pg_amop ORDER BY oid
"""
CLASS_FUNCTIONS: Final = """
SELECT oid, amprocfamily, amproclefttype::oid, amprocrighttype::oid, amprocnum, amproc::oid FROM pg_amproc ORDER BY oid
"""
DESCRIPTIONS: Final = """
SELECT classoid::int, objoid::int, description FROM pg_description
WHERE objsubid = 0 AND classoid IN ('pg_type'::regclass, 'pg_cast'::regclass, 'pg_am'::regclass,
  'pg_ts_config'::regclass, 'pg_ts_dict'::regclass, 'pg_ts_parser'::regclass, 'pg_ts_template'::regclass,
  'pg_language'::regclass, 'pg_collation'::regclass, 'pg_namespace'::regclass) ORDER BY 1, 2
"""

Row = dict[str, Any]


class Finder:
    """Finds out which of PostgreSQL's functions and operators bind."""

    def __init__(self, database: psycopg.Connection[Any]) -> None:
        self.database = database
        self.catalog = FakeCatalog()
        names = database.execute("SELECT oid::int, typname, format_type(oid, -1) FROM pg_type").fetchall()
        self.types = {oid: name for oid, name, _ in names}
        self.known = set(type_names())

    def rows(self, query: str, *parameters: object) -> list[Row]:
        """The rows of a query by column names."""
        cursor = self.database.execute(query, parameters or None)
        assert cursor.description is not None
        return [dict(zip([c.name for c in cursor.description], row, strict=True)) for row in cursor]

    def value(self, oid: int) -> str | None:
        """NULL of a type; None for a type that is not here."""
        name = POLYMORPHIC.get(self.types[oid], self.types[oid])
        if name == "record":
            return "ROW(1, 'a')"
        if oid not in self.known and self.types[oid] not in POLYMORPHIC:
            return None
        return f'CAST(NULL AS "{name}")' if name == "char" else f"CAST(NULL AS {name})"

    def binds(self, text: str) -> bool:
        """Whether a statement binds; errors that say something else than that a thing is missing count as yes."""
        try:
            bind_statement(text, self.catalog)
        except SqlError as error:
            return error.sqlstate not in ("42883", "0A000", "42704", "42601", "42P13")
        except AssertionError:
            return True
        return True

    def callable(self, row: Row) -> bool:
        """Whether a call of a function binds."""
        args = [self.value(oid) for oid in row["proargtypes"]]
        name = f'"{row["proname"]}"'
        if None in args or (row["prorettype"] not in self.known and self.types[row["prorettype"]] not in POLYMORPHIC):
            return False
        values = [a for a in args if a is not None]
        if row["aggkind"] in ("o", "h"):
            direct = row["aggnumdirectargs"] if row["aggkind"] == "o" else 1
            ordered = ", ".join(values[direct:] or ["1"])
            return self.binds(f"SELECT {name}({', '.join(values[:direct])}) WITHIN GROUP (ORDER BY {ordered})")
        if row["prokind"] == "w":
            return self.binds(f"SELECT {name}({', '.join(values)}) OVER ()")
        if row["prokind"] == "a" and not values:
            return self.binds(f"SELECT {name}(*)")
        call = f"{name}({', '.join(values)})"
        return any(map(self.binds, (f"SELECT {call}", f"SELECT * FROM {call}", f"SELECT * FROM {call} AS t(a int)")))

    def operator(self, row: Row) -> bool:
        """Whether a use of an operator binds."""
        left = "" if not row["oprleft"] else self.value(row["oprleft"])
        right = self.value(row["oprright"])
        if left is None or right is None:
            return False
        return self.binds(f"SELECT {left} OPERATOR(pg_catalog.{row['oprname']}) {right}")


def written(value: Any) -> str:
    """A value in COPY's text format, arrays and booleans as PostgreSQL writes them."""
    if value is None:
        return "\\N"
    if isinstance(value, bool):
        return "t" if value else "f"
    if isinstance(value, list):
        return "{" + ",".join('""' if v == "" else str(v) for v in value) + "}"
    text = f"{value:g}" if isinstance(value, float) else str(value)
    return text.replace("\\", "\\\\").replace("\t", "\\t").replace("\n", "\\n")


def write(name: str, columns: Iterable[str], rows: Iterable[Row]) -> None:
    """A file of rows."""
    columns = tuple(columns)
    lines = ["\t".join(columns), *("\t".join(written(row[c]) for c in columns) for row in rows)]
    (ROWS / f"{name}.txt").write_text("\n".join(lines) + "\n")
    print(name, len(lines) - 1)


def main(dsn: str) -> None:
    """Write all files."""
    with psycopg.connect(dsn) as database:
        find = Finder(database)
        proc = find.rows(PROC)
        kept = {row["oid"] for row in proc if row["proname"] in UNASKED or find.callable(row)}
        print(len(kept), "functions bind")
        operators = [row for row in find.rows(OPERATORS) if find.operator(row)]
        known = {row["oid"] for row in operators}
        for row in operators:
            for link in ("oprcom", "oprnegate"):
                row[link] = row[link] if row[link] in known else 0
        casts = [r for r in find.rows(CASTS) if {r["castsource"], r["casttarget"]} <= find.known]
        casts = [
            r for r in casts
            if find.binds(f'SELECT {find.value(r["castsource"])}::"{find.types[r["casttarget"]]}"')
        ]  # fmt: skip
        aggregates = [row for row in find.rows(AGGREGATES) if row["aggfnoid"] in kept]
        classes = [r for r in find.rows(CLASSES) if r["opcintype"] in find.known]
        families = {r["opcfamily"] for r in classes}
        class_operators = [
            r for r in find.rows(CLASS_OPERATORS) if r["amopfamily"] in families and r["amopopr"] in known
        ]
        class_functions = [
            r for r in find.rows(CLASS_FUNCTIONS)
            if r["amprocfamily"] in families and {r["amproclefttype"], r["amprocrighttype"]} <= find.known
        ]  # fmt: skip
        named = [r[c] for r in operators for c in ("oprcode", "oprrest", "oprjoin")]
        named += [r[c] for r in aggregates for c in r if c.endswith("fn")]
        named += [r["castfunc"] for r in casts] + [r["amproc"] for r in class_functions]
        columns = [
            "typinput",
            "typoutput",
            "typreceive",
            "typsend",
            "typmodin",
            "typmodout",
            "typanalyze",
            "typsubscript",
        ]
        for row in find.rows(f"SELECT oid, {', '.join(f'{c}::oid' for c in columns)} FROM pg_type"):
            named += [row[c] for c in columns] if row["oid"] in find.known else []
        named += [r["amhandler"] for r in find.rows("SELECT amhandler::oid FROM pg_am")]
        named += [r["s"] for r in find.rows("SELECT prosupport::oid s, oid FROM pg_proc") if r["s"]]
        handlers = "SELECT unnest(ARRAY[lanplcallfoid, laninline, lanvalidator]) AS o FROM pg_language"
        named += [r["o"] for r in find.rows(handlers)]
        for relation, query in SEARCH.items():
            found = find.rows(query, list(CONFIGURATIONS))
            write(relation, found[0], found)
            named += [r[c] for r in found for c in r if c.startswith(("prs", "tmpl")) and isinstance(r[c], int)]
        wanted = kept | set(named)
        for row in proc:
            row["prosupport"] = row["prosupport"] if row["prosupport"] in wanted else 0
        ranges = [r for r in find.rows(RANGES) if r["rngtypid"] in find.known]
        wanted |= {r[c] for r in ranges for c in ("rngcanonical", "rngsubdiff")}
        write("pg_range", ranges[0], ranges)
        write("pg_proc", [c for c in proc[0] if c not in HIDDEN], [r for r in proc if r["oid"] in wanted])
        write("pg_operator", operators[0], operators)
        write("pg_cast", casts[0], casts)
        write("pg_aggregate", aggregates[0], aggregates)
        write("pg_opfamily", ("oid", "opfmethod", "opfname"), [r for r in find.rows(FAMILIES) if r["oid"] in families])
        write("pg_opclass", classes[0], classes)
        write("pg_amop", class_operators[0], class_operators)
        write("pg_amproc", class_functions[0], class_functions)
        ids = {n: {r["oid"] for r in find.rows(q, list(CONFIGURATIONS))} for n, q in SEARCH.items() if n[-3:] != "map"}
        described = dict(zip((3602, 3600, 3601, 3764), ids.values(), strict=True)) | {
            1247: find.known,
            2605: {r["oid"] for r in casts},
            3456: {100, 950, 951},
        }
        notes = [r for r in find.rows(DESCRIPTIONS) if r["objoid"] in described.get(r["classoid"], {r["objoid"]})]
        write("pg_description", notes[0], notes)


if __name__ == "__main__":
    main(sys.argv[1])
