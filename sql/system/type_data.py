"""The types of pg_type, with their oids, from PostgreSQL 15."""

from __future__ import annotations

from typing import Final

from storage.types.definitions import DEFINITIONS

_TYPES: Final = """
16 bool 1 t b B t 0 1000 bool - c p 0
17 bytea -1 f b U f 0 1001 bytea - i x 0
18 char 1 t b Z f 0 1002 char - c p 0
19 name 64 f b S f 18 1003 name - c p 950
20 int8 8 t b N f 0 1016 int8 - d p 0
21 int2 2 t b N f 0 1005 int2 - s p 0
22 int2vector -1 f b A f 21 1006 int2vector - i p 0
23 int4 4 t b N f 0 1007 int4 - i p 0
24 regproc 4 t b N f 0 1008 regproc - i p 0
25 text -1 f b S t 0 1009 text - i x 100
26 oid 4 t b N t 0 1028 oid - i p 0
30 oidvector -1 f b A f 26 1013 oidvector - i p 0
114 json -1 f b U f 0 199 json_ - i x 0
199 _json -1 f b A f 114 0 array_ - i x 0
700 float4 4 t b N f 0 1021 float4 - i p 0
701 float8 8 t b N t 0 1022 float8 - d p 0
705 unknown -2 f p X f 0 0 unknown - c p 0
1000 _bool -1 f b A f 16 0 array_ - i x 0
1001 _bytea -1 f b A f 17 0 array_ - i x 0
1002 _char -1 f b A f 18 0 array_ - i x 0
1003 _name -1 f b A f 19 0 array_ - i x 950
1005 _int2 -1 f b A f 21 0 array_ - i x 0
1006 _int2vector -1 f b A f 22 0 array_ - i x 0
1007 _int4 -1 f b A f 23 0 array_ - i x 0
1008 _regproc -1 f b A f 24 0 array_ - i x 0
1009 _text -1 f b A f 25 0 array_ - i x 100
1013 _oidvector -1 f b A f 30 0 array_ - i x 0
1014 _bpchar -1 f b A f 1042 0 array_ bpchartypmod i x 100
1015 _varchar -1 f b A f 1043 0 array_ varchartypmod i x 100
1016 _int8 -1 f b A f 20 0 array_ - d x 0
1021 _float4 -1 f b A f 700 0 array_ - i x 0
1022 _float8 -1 f b A f 701 0 array_ - d x 0
1028 _oid -1 f b A f 26 0 array_ - i x 0
1042 bpchar -1 f b S f 0 1014 bpchar bpchartypmod i x 100
1043 varchar -1 f b S f 0 1015 varchar varchartypmod i x 100
1082 date 4 t b D f 0 1182 date_ - i p 0
1083 time 8 t b D f 0 1183 time_ timetypmod d p 0
1114 timestamp 8 t b D f 0 1115 timestamp_ timestamptypmod d p 0
1115 _timestamp -1 f b A f 1114 0 array_ timestamptypmod d x 0
1182 _date -1 f b A f 1082 0 array_ - i x 0
1183 _time -1 f b A f 1083 0 array_ timetypmod d x 0
1184 timestamptz 8 t b D t 0 1185 timestamptz_ timestamptztypmod d p 0
1185 _timestamptz -1 f b A f 1184 0 array_ timestamptztypmod d x 0
1186 interval 16 f b T t 0 1187 interval_ intervaltypmod d p 0
1187 _interval -1 f b A f 1186 0 array_ intervaltypmod d x 0
1231 _numeric -1 f b A f 1700 0 array_ numerictypmod i x 0
1700 numeric -1 f b N f 0 1231 numeric_ numerictypmod i m 0
2205 regclass 4 t b N f 0 2210 regclass - i p 0
2206 regtype 4 t b N f 0 2211 regtype - i p 0
2210 _regclass -1 f b A f 2205 0 array_ - i x 0
2211 _regtype -1 f b A f 2206 0 array_ - i x 0
2249 record -1 f p P f 0 2287 record_ - d x 0
2276 any 4 t p P f 0 0 any_ - i p 0
2277 anyarray -1 f p P f 0 0 anyarray_ - d x 0
2278 void 4 t p P f 0 0 void_ - i p 0
2283 anyelement 4 t p P f 0 0 anyelement_ - i p 0
2287 _record -1 f p P f 2249 0 array_ - d x 0
3802 jsonb -1 f b U f 0 3807 jsonb_ - i x 0
3807 _jsonb -1 f b A f 3802 0 array_ - i x 0
4089 regnamespace 4 t b N f 0 4090 regnamespace - i p 0
4090 _regnamespace -1 f b A f 4089 0 array_ - i x 0
269 table_am_handler 4 t p P f 0 0 table_am_handler_ - i p 0
325 index_am_handler 4 t p P f 0 0 index_am_handler_ - i p 0
1263 _cstring -1 f b A f 2275 0 array_ - i x 0
2202 regprocedure 4 t b N f 0 2207 regprocedure - i p 0
2203 regoper 4 t b N f 0 2208 regoper - i p 0
2204 regoperator 4 t b N f 0 2209 regoperator - i p 0
2207 _regprocedure -1 f b A f 2202 0 array_ - i x 0
2208 _regoper -1 f b A f 2203 0 array_ - i x 0
2209 _regoperator -1 f b A f 2204 0 array_ - i x 0
2275 cstring -2 f p P f 0 1263 cstring_ - c p 0
2279 trigger 4 t p P f 0 0 trigger_ - i p 0
2280 language_handler 4 t p P f 0 0 language_handler_ - i p 0
2281 internal 8 t p P f 0 0 internal_ - d p 0
2776 anynonarray 4 t p P f 0 0 anynonarray_ - i p 0
3115 fdw_handler 4 t p P f 0 0 fdw_handler_ - i p 0
3310 tsm_handler 4 t p P f 0 0 tsm_handler_ - i p 0
3500 anyenum 4 t p P f 0 0 anyenum_ - i p 0
3831 anyrange -1 f p P f 0 0 anyrange_ - d x 0
3838 event_trigger 4 t p P f 0 0 event_trigger_ - i p 0
4096 regrole 4 t b N f 0 4097 regrole - i p 0
4097 _regrole -1 f b A f 4096 0 array_ - i x 0
4191 regcollation 4 t b N f 0 4192 regcollation - i p 0
4192 _regcollation -1 f b A f 4191 0 array_ - i x 0
4537 anymultirange -1 f p P f 0 0 anymultirange_ - d x 0
4538 anycompatiblemultirange -1 f p P f 0 0 anycompatiblemultirange_ - d x 0
5077 anycompatible 4 t p P f 0 0 anycompatible_ - i p 0
5078 anycompatiblearray -1 f p P f 0 0 anycompatiblearray_ - d x 0
5079 anycompatiblenonarray 4 t p P f 0 0 anycompatiblenonarray_ - i p 0
5080 anycompatiblerange -1 f p P f 0 0 anycompatiblerange_ - d x 0
"""
"""One type a line: oid, typname, typlen, typbyval, typtype, typcategory, typispreferred, typelem, typarray, the prefix
of its input and output functions' names (``bool``: boolin, boolout, boolrecv, boolsend), the same for its typmod
functions, typalign, typstorage, typcollation. Types with a definition of their own (``storage.types.definitions``) are
not listed here."""


def _with_array(line: str) -> str:
    """A type's line, and that of its array type."""
    oid, name, *_, array, _, modifier, align, _, collation = line.split()
    return (
        f"{line}\n{array} _{name} -1 f b A f {oid} 0 array_ {modifier} {'d' if align == 'd' else 'i'} x {collation}\n"
    )


TYPES: Final = _TYPES + "".join(
    _with_array(line) for own in DEFINITIONS.values() for line in own.catalog.strip().splitlines()
)
