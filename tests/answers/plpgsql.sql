CREATE TABLE log (id int PRIMARY KEY, note text)

CREATE FUNCTION factorial(n int) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE product bigint := 1;
BEGIN
  FOR i IN 1 .. n LOOP product := product * i; END LOOP;
  RETURN product;
END $$

SELECT factorial(0), factorial(10), factorial(x) FROM generate_series(1, 3) x

CREATE FUNCTION add_notes(count int) RETURNS text LANGUAGE plpgsql AS $$
DECLARE done int; r record; l log%ROWTYPE; first log.note%TYPE;
BEGIN
  INSERT INTO log SELECT i, 'n' || i FROM generate_series(1, count) i;
  GET DIAGNOSTICS done = ROW_COUNT;
  RAISE NOTICE 'added % of %, found %', done, count, FOUND;
  FOR r IN SELECT * FROM log WHERE id < 3 ORDER BY id DESC LOOP
    RAISE NOTICE '% % %', r.id, r.note, r;
  END LOOP;
  SELECT * INTO STRICT l FROM log WHERE id = 1;
  SELECT note INTO first FROM log WHERE id = 99;
  RAISE INFO '%', coalesce(first, l.note || '!');
  UPDATE log SET note = l.note WHERE id = count RETURNING note INTO first;
  RETURN first;
END $$

SELECT add_notes(4)

SELECT * FROM log ORDER BY id

SELECT add_notes(2)

CREATE FUNCTION careful(what text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE text_ text; state text; n int;
BEGIN
  BEGIN
    INSERT INTO log VALUES (50, 'gone');
    IF what = 'zero' THEN PERFORM 1 / 0;
    ELSIF what = 'key' THEN INSERT INTO log VALUES (1, '');
    ELSIF what = 'own' THEN RAISE EXCEPTION 'own %', what USING ERRCODE = 'P0099', HINT = 'none', DETAIL = 'some';
    ELSIF what = 'strict' THEN SELECT id INTO STRICT n FROM log;
    ELSIF what = 'nothing' THEN SELECT id INTO STRICT n FROM log WHERE id = -1;
    ELSIF what = 'assert' THEN ASSERT 1 = 2, 'no';
    ELSIF what = 'uncaught' THEN RAISE raise_exception;
    END IF;
  EXCEPTION
    WHEN division_by_zero OR SQLSTATE 'P0099' THEN
      GET STACKED DIAGNOSTICS text_ = MESSAGE_TEXT, state = RETURNED_SQLSTATE;
      RETURN text_ || ' ' || state || ' ' || (SELECT count(*) FROM log);
    WHEN integrity_constraint_violation THEN RETURN SQLERRM;
    WHEN no_data_found OR too_many_rows THEN RAISE NOTICE 'rows: %', SQLERRM; RAISE;
  END;
  RETURN 'fine';
END $$

SELECT careful('zero')

SELECT careful('key')

SELECT careful('own')

SELECT careful('strict')

SELECT careful('nothing')

SELECT careful('assert')

SELECT careful('uncaught')

SELECT careful('else')

SELECT count(*) FROM log WHERE id = 50

CREATE FUNCTION squares(upto int) RETURNS SETOF int LANGUAGE plpgsql AS $$
DECLARE i int := 0;
BEGIN
  <<outer>>
  LOOP
    i := i + 1;
    EXIT outer WHEN i > upto;
    CONTINUE WHEN i % 2 = 0;
    RETURN NEXT i * i;
  END LOOP;
  RETURN QUERY SELECT id + 1000 FROM log WHERE id < 2;
  RETURN QUERY EXECUTE 'SELECT $1 + $2' USING upto, 5;
END $$

SELECT * FROM squares(7)

SELECT squares(3), 'x'

CREATE FUNCTION pairs() RETURNS TABLE (id int, twice int) LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
  FOR id, twice IN SELECT log.id, log.id * 2 FROM log ORDER BY 1 LOOP
    RETURN NEXT;
  END LOOP;
  RETURN QUERY SELECT id, 0 FROM log WHERE log.id = 1;
END $$

SELECT * FROM pairs()

CREATE FUNCTION clash(id int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN RETURN (SELECT max(id) FROM log); END $$

SELECT clash(1)

CREATE FUNCTION chosen(x int) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
  CASE x WHEN 1, 2 THEN RETURN 'few'; WHEN 3 THEN RETURN 'three'; END CASE;
END $$

SELECT chosen(2), chosen(3)

SELECT chosen(4)

CREATE FUNCTION arrays(given int[]) RETURNS int[] LANGUAGE plpgsql AS $$
DECLARE x int; s int := 0; made int[];
BEGIN
  FOREACH x IN ARRAY given LOOP s := s + x; END LOOP;
  made[1] := s;
  made := made || 7;
  RETURN made;
END $$

SELECT arrays('{1,2,3}')

SELECT arrays(NULL)

CREATE FUNCTION walk() RETURNS text LANGUAGE plpgsql AS $$
DECLARE c CURSOR (least int) FOR SELECT id, note FROM log WHERE id >= least ORDER BY id;
  d refcursor; i int; n text; found_ text := '';
BEGIN
  OPEN c(2);
  LOOP FETCH c INTO i, n; EXIT WHEN NOT FOUND; found_ := found_ || i || n || ';'; END LOOP;
  MOVE ABSOLUTE 1 FROM c;
  FETCH RELATIVE 1 FROM c INTO i, n;
  found_ := found_ || i;
  CLOSE c;
  FOR r IN c(least := 4) LOOP found_ := found_ || '/' || r.note; END LOOP;
  OPEN d FOR EXECUTE 'SELECT ' || quote_literal('dyn');
  FETCH d INTO n;
  CLOSE d;
  RETURN found_ || n;
END $$

SELECT walk()

CREATE FUNCTION recursive(n int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN RETURN CASE WHEN n < 2 THEN n ELSE recursive(n - 1) + recursive(n - 2) END; END $$

SELECT recursive(10)

CREATE FUNCTION silent() RETURNS int LANGUAGE plpgsql AS $$ BEGIN NULL; END $$

SELECT silent()

CREATE FUNCTION v() RETURNS void LANGUAGE plpgsql AS $$
DECLARE a CONSTANT int := 5; b int NOT NULL DEFAULT a; c varchar(3);
BEGIN
  c := 'abc';
  BEGIN c := 'abcd'; EXCEPTION WHEN string_data_right_truncation THEN RAISE WARNING '% %', SQLSTATE, c; END;
  BEGIN b := NULL; EXCEPTION WHEN OTHERS THEN RAISE LOG 'unseen'; RAISE NOTICE '%', SQLERRM; END;
  b := '12';
  b := 12.6;
  RAISE NOTICE '%% %', b;
  EXECUTE 'CREATE TEMP TABLE made (x int)';
  INSERT INTO made VALUES (b), (a);
  EXECUTE 'SELECT sum(x) FROM made WHERE x > $1' INTO b USING 2;
  RAISE NOTICE 'sum %', b;
  DROP TABLE made;
  RETURN;
END $$

SELECT v()

DO $$ DECLARE r record; BEGIN RAISE NOTICE '%', r.x; END $$

DO $$ DECLARE r record; BEGIN SELECT 1 AS a INTO r; RAISE NOTICE '%', r.x; END $$

DO $$ BEGIN SELECT 1; END $$

DO $$
BEGIN
  EXECUTE NULL;
END $$

DO $$ BEGIN INSERT INTO nowhere VALUES (1); END $$

DO $$ DECLARE x int := 'one'; BEGIN END $$

DO $$ BEGIN FOR i IN REVERSE 5 .. 1 BY 2 LOOP RAISE NOTICE '%', i; END LOOP; END $$

CREATE FUNCTION wrong() RETURNS int LANGUAGE plpgsql AS $$ BEGIN IF 1 THEN RETURN 2; END; $$

CREATE FUNCTION wrong() RETURNS int LANGUAGE plpgsql AS $$ BEGIN x := 2; END; $$

CREATE FUNCTION wrong() RETURNS int LANGUAGE plpgsql AS $$ DECLARE a int; a text; BEGIN END; $$

CREATE FUNCTION wrong() RETURNS int LANGUAGE plpgsql AS $$ BEGIN RAISE NOTICE '% %', 1; END; $$

CREATE FUNCTION wrong() RETURNS int LANGUAGE plpgsql AS $$ BEGIN EXIT; END; $$

CREATE FUNCTION wrong() RETURNS int LANGUAGE plpgsql AS $$ BEGIN RETURN NEXT 1; END; $$

CREATE FUNCTION wrong() RETURNS int LANGUAGE plpgsql AS $$ BEGIN RETURN; END; $$

SELECT count(*) FROM log

CREATE FUNCTION opened(INOUT c refcursor) LANGUAGE plpgsql AS $$ BEGIN OPEN c FOR SELECT id FROM log ORDER BY id; END $$

BEGIN; SELECT opened('mine')

FETCH 2 FROM mine

COMMIT

DO $$ DECLARE x int := x + 1; BEGIN END $$

DO $$ BEGIN RETURN 1; END $$

CREATE FUNCTION wrong() RETURNS int LANGUAGE plpgsql AS $$ DECLARE c CURSOR (a int) FOR SELECT a; BEGIN OPEN c; END; $$

CREATE TYPE pair AS (a int, b varchar)

CREATE FUNCTION paired(x int) RETURNS pair LANGUAGE plpgsql AS $$ DECLARE p pair; BEGIN p.a := x; p.b := 'b' || x; RETURN p; END $$

SELECT paired(3), (paired(4)).b

SELECT * FROM paired(5)

CREATE FUNCTION unpaired() RETURNS pair LANGUAGE plpgsql AS $$ BEGIN RETURN (1, 'x'::text); END $$

SELECT unpaired()

DO $$ DECLARE r pair; BEGIN FOREACH r IN ARRAY ARRAY[(1, 'a'), (2, 'b')]::pair[] LOOP RAISE NOTICE '% %', r, r.b; END LOOP; END $$

DO $$
BEGIN
  SET LOCAL work_mem TO '7MB';
  BEGIN
    PERFORM set_config('work_mem', '9MB', true);
    RAISE NOTICE '%', current_setting('work_mem');
    PERFORM 1 / 0;
  EXCEPTION WHEN division_by_zero THEN RAISE NOTICE '%', current_setting('work_mem');
  END;
  SET LOCAL TimeZone TO 'Asia/Tokyo';
  RAISE NOTICE '%', '2020-01-01 00:00+00'::timestamptz;
END $$

CREATE TABLE single (f1 int)

INSERT INTO single VALUES (1), (2)

CREATE FUNCTION single(int) RETURNS single LANGUAGE sql AS $$ SELECT $1 AS f1 $$

SELECT single(4), (single(4)).f1

SELECT x.f1, x FROM single t LEFT JOIN LATERAL single(t.f1) x ON true ORDER BY 1

CREATE FUNCTION singles(int) RETURNS SETOF single LANGUAGE sql AS $$ SELECT * FROM single WHERE f1 <= $1 $$

SELECT singles(1), (singles(1)).f1

SELECT * FROM singles(2) ORDER BY 1

CREATE FUNCTION stepped(int) RETURNS single LANGUAGE plpgsql AS $$ BEGIN RETURN row($1); END $$

SELECT stepped(4), (stepped(5)).f1

SELECT * FROM stepped(6)

CREATE FUNCTION added(int) RETURNS single LANGUAGE sql AS $$ INSERT INTO single VALUES ($1) RETURNING * $$

SELECT added(7)

SELECT * FROM added(8)

CREATE TABLE parts (f1 int DEFAULT 7, f2 int[], f3 pair, f4 pair[])

INSERT INTO parts (f3.a, f3.b) VALUES (1, 'x'), (2, NULL)

INSERT INTO parts (f2[1], f2[2]) VALUES (1, '2'), (3, 4)

INSERT INTO parts (f4[1].a, f4[1].b, f1) VALUES (5, 'y', 1), ('6', 'z', 2)

INSERT INTO parts (f2[1], f2[2]) VALUES (1, DEFAULT), (3, 4)

INSERT INTO parts (f3.a, f3.b) VALUES (1, DEFAULT)

INSERT INTO parts (f2[1], f2[2]) VALUES (1, 2), (3)

SELECT * FROM parts ORDER BY f1, f2, f3, f4

CREATE VIEW of_parts AS SELECT f3, f1, f2 FROM parts

ALTER VIEW of_parts ALTER f3 SET DEFAULT '(0,d)'

INSERT INTO of_parts (f2[1], f2[2], f3, f2[4], f1, f2[3]) VALUES (1, 2, DEFAULT, 4, DEFAULT, 3), (10, 11, '(5,e)', 13, 100, 12)

INSERT INTO parts (f2[1], f1) VALUES (9, DEFAULT)

SELECT * FROM parts ORDER BY f1, f2, f3, f4

CREATE PROCEDURE summed(a int, INOUT b int, OUT c text) LANGUAGE plpgsql AS $$ BEGIN b := a + b; c := 'c' || b; END $$

DO $$ DECLARE x int := 1; y text; BEGIN CALL summed(5, x, y); RAISE NOTICE '% %', x, y; END $$

DO $$ DECLARE y text; BEGIN CALL summed(5, 3, y); END $$

DO $$ DECLARE x bigint := 1; y text; BEGIN CALL summed(5, c => x, b => y); END $$

DO $$ DECLARE x int := 1; y varchar; BEGIN CALL summed(a => 5, c => y, b => x); END $$

DO $$ DECLARE r pair; s record; BEGIN r.a := 2; CALL summed(5, b => r.a, c => s.t); END $$

DO $$ DECLARE r record; BEGIN SELECT 1 AS f, ''::text AS g INTO r; CALL summed(5, c => r.g, b => r.f); RAISE NOTICE '%', r; END $$

DO $$ DECLARE a int[] := '{1}'; y text; BEGIN CALL summed(5, a[1], y); END $$

DO $$ DECLARE x CONSTANT int := 1; y text; BEGIN CALL summed(5, x, y); END $$

CREATE PROCEDURE doubled(INOUT a int DEFAULT 3, INOUT b int DEFAULT 4) LANGUAGE sql AS $$ SELECT a * 2, b * 2 $$

DO $$ DECLARE x int := 1; BEGIN CALL doubled(x); END $$

DO $$ DECLARE x int := 1; y int; BEGIN CALL doubled(b => x, a => y); RAISE NOTICE '% %', x, y; EXECUTE 'CALL doubled()' INTO x; RAISE NOTICE '%', x; END $$

DO $$ DECLARE a int[] := '{1,2,3,4}'; BEGIN a[2:3] := '{7,8}'; a[1] := 3.7; RAISE NOTICE '%', a; a[:2] := a[3:4]; a[3:] := ARRAY[5,6,7]; RAISE NOTICE '%', a; a[1:2] := '{1}'; END $$

DO $$ DECLARE a int[] := '{1,2,3,4}'; BEGIN a[2:3] := 4; END $$

DO $$ DECLARE a int[] := '{1,2,3,4}'; BEGIN a[2:NULL] := '{4}'; END $$

DO $$ DECLARE a int[] := '{1,2,3,4}'; BEGIN a[NULL] := 4; END $$

DO $$ DECLARE a int := 3; BEGIN a[1] := '{1}'; END $$

DO $$ DECLARE a int[][] := '{{1,2},{3,4}}'; BEGIN a[1][2] := 5; RAISE NOTICE '%', a; a[1] := 3; END $$

DO $$ DECLARE a int[]; BEGIN FOR i IN 1 .. 4 LOOP a[i] := i * i; END LOOP; a[a[2] - 3] := a[3]; a[6] := 0; RAISE NOTICE '%', a; END $$

DO $$ DECLARE j jsonb := '{"a": 1}'; k text := 'c'; BEGIN j['b'] := '[1,2]'; j['b'][0] := '7'; j[k]['d'] := 8; RAISE NOTICE '%', j; j['a'] := NULL; RAISE NOTICE '%', j; END $$

DO $$ DECLARE j jsonb; BEGIN j['b'] := to_jsonb('x'::text); RAISE NOTICE '%', j; j := '1'; j['b'] := '2'; END $$

CREATE TYPE nest AS (p pair, a int[], ps pair[])

DO $$ DECLARE n nest; BEGIN n.p.a := 5; n.p.b := 'x'; n.a[1] := 4; n.ps[1].a := '3'; RAISE NOTICE '%', n; n.ps[1] := row(3, 'x'); n.ps[2].b := 6; RAISE NOTICE '% %', n, (n.ps[1]).b; END $$

DO $$ DECLARE n nest; BEGIN n.p.c := 5; END $$

DO $$ DECLARE n nest; BEGIN n.a.c := 5; END $$

DO $$ DECLARE n nest; BEGIN n.p.a := 'x'; END $$

DO $$ <<b>> DECLARE n nest; r record; BEGIN b.n.p.b := 'y'; SELECT n AS f INTO r; r.f.p.a := 4; b.r.f.ps[1] := (1, 'z'); RAISE NOTICE '% %', n, r; END $$

DO $$ DECLARE r record; BEGIN r.x.y := 4; END $$

DO $$ DECLARE a int[] := '{1}'; BEGIN SELECT 5 INTO a[1]; END $$

DO $$ DECLARE a int[] := '{1}'; BEGIN GET DIAGNOSTICS a[1] = ROW_COUNT; END $$

DO $$ DECLARE a CONSTANT int[] := '{1}'; BEGIN a[1] := 4; END $$

SET client_min_messages TO warning

CREATE FUNCTION copied(a log.id%TYPE, plpgsql.log.note%TYPE, OUT c log.note%TYPE, d single.f1%TYPE DEFAULT 7) RETURNS log.note%TYPE LANGUAGE plpgsql AS $$ BEGIN c := $2 || a + d; END $$

SELECT copied(1, 'x'), pg_get_function_arguments('copied'::regproc)

CREATE FUNCTION wrong(a log.none%TYPE) RETURNS int LANGUAGE sql AS 'SELECT 1'

CREATE FUNCTION wrong(a nowhere.none%TYPE) RETURNS int LANGUAGE sql AS 'SELECT 1'

CREATE FUNCTION tabled(log.id%TYPE) RETURNS TABLE (n log.note%TYPE) LANGUAGE sql AS 'SELECT note FROM log WHERE id = $1'

SELECT * FROM tabled(1)

DROP FUNCTION tabled(log.id%TYPE)

RESET client_min_messages
