"""The types of pg_type and the functions that they refer to, with their oids, from PostgreSQL 15."""

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
"""
"""One type a line: oid, typname, typlen, typbyval, typtype, typcategory, typispreferred, typelem, typarray, the prefix
of its input and output functions' names (``bool``: boolin, boolout, boolrecv, boolsend), the same for its typmod
functions, typalign, typstorage, typcollation. Types with a definition of their own (``storage.types.definitions``) are
not listed here."""

_FUNCTIONS: Final = """
3:heap_tableam_handler 31:byteaout 33:charout 34:namein 35:nameout 38:int2in 39:int2out 40:int2vectorin
41:int2vectorout 42:int4in 43:int4out 44:regprocin 45:regprocout 46:textin 47:textout 54:oidvectorin 55:oidvectorout
109:unknownin 110:unknownout 200:float4in 201:float4out 214:float8in 215:float8out 321:json_in 322:json_out
323:json_recv 324:json_send 330:bthandler 331:hashhandler 332:gisthandler
333:ginhandler 334:spghandler 335:brinhandler 460:int8in 461:int8out 750:array_in 751:array_out
1044:bpcharin 1045:bpcharout 1046:varcharin 1047:varcharout 1084:date_in 1085:date_out 1143:time_in 1144:time_out
1150:timestamptz_in 1151:timestamptz_out 1160:interval_in 1161:interval_out 1242:boolin 1243:boolout 1244:byteain
1245:charin 1312:timestamp_in 1313:timestamp_out 1701:numeric_in 1702:numeric_out 1798:oidin 1799:oidout
2218:regclassin 2219:regclassout 2220:regtypein 2221:regtypeout 2290:record_in 2291:record_out 2294:any_in
2295:any_out 2296:anyarray_in 2297:anyarray_out 2298:void_in 2299:void_out 2312:anyelement_in 2313:anyelement_out
2400:array_recv 2401:array_send 2402:record_recv 2403:record_send 2404:int2recv 2405:int2send 2406:int4recv
2407:int4send 2408:int8recv 2409:int8send 2410:int2vectorrecv 2411:int2vectorsend 2412:bytearecv 2413:byteasend
2414:textrecv 2415:textsend 2416:unknownrecv 2417:unknownsend 2418:oidrecv 2419:oidsend 2420:oidvectorrecv
2421:oidvectorsend 2422:namerecv 2423:namesend 2424:float4recv 2425:float4send 2426:float8recv 2427:float8send
2430:bpcharrecv 2431:bpcharsend 2432:varcharrecv 2433:varcharsend 2434:charrecv 2435:charsend 2436:boolrecv
2437:boolsend 2444:regprocrecv 2445:regprocsend 2452:regclassrecv 2453:regclasssend 2454:regtyperecv 2455:regtypesend
2460:numeric_recv 2461:numeric_send 2468:date_recv 2469:date_send 2470:time_recv 2471:time_send 2474:timestamp_recv
2475:timestamp_send 2476:timestamptz_recv 2477:timestamptz_send 2478:interval_recv 2479:interval_send
2502:anyarray_recv 2503:anyarray_send 2903:intervaltypmodin 2904:intervaltypmodout 2905:timestamptypmodin
2906:timestamptypmodout 2907:timestamptztypmodin 2908:timestamptztypmodout 2909:timetypmodin 2910:timetypmodout
2913:bpchartypmodin 2914:bpchartypmodout 2915:varchartypmodin 2916:varchartypmodout 2917:numerictypmodin
2918:numerictypmodout 3120:void_recv 3121:void_send
3506:enum_in 3507:enum_out 3532:enum_recv 3533:enum_send 3803:jsonb_send 3804:jsonb_out 3805:jsonb_recv 3806:jsonb_in
4084:regnamespacein 4085:regnamespaceout
4087:regnamespacerecv 4088:regnamespacesend 6098:jsonb_subscript_handler 6179:array_subscript_handler
6180:raw_array_subscript_handler
"""
"""Functions by oid: those that regproc columns of pg_type and pg_am refer to."""


def _with_array(line: str) -> str:
    """A type's line, and that of its array type."""
    oid, name, *_, array, _, modifier, align, _, collation = line.split()
    return (
        f"{line}\n{array} _{name} -1 f b A f {oid} 0 array_ {modifier} {'d' if align == 'd' else 'i'} x {collation}\n"
    )


TYPES: Final = _TYPES + "".join(
    _with_array(line) for own in DEFINITIONS.values() for line in own.catalog.strip().splitlines()
)
FUNCTIONS: Final = " ".join((_FUNCTIONS, *(own.functions for own in DEFINITIONS.values())))
