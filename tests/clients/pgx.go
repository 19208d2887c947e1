// What pgx does: a line "ok NAME" or "failed NAME: why" for each. The argument is a connection string.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/jackc/pgconn"
	"github.com/jackc/pgx/v4"
	"github.com/jackc/pgx/v4/pgxpool"
)

var ctx = context.Background()

func check(name string, what func() error) {
	if err := what(); err != nil {
		fmt.Printf("failed %s: %v\n", name, err)
	} else {
		fmt.Printf("ok %s\n", name)
	}
}

func same(found, wanted interface{}) error {
	if fmt.Sprint(found) != fmt.Sprint(wanted) {
		return fmt.Errorf("%v instead of %v", found, wanted)
	}
	return nil
}

func main() {
	conn, err := pgx.Connect(ctx, os.Args[1])
	if err != nil {
		fmt.Println("failed to connect:", err)
		os.Exit(1)
	}
	defer conn.Close(ctx)
	run := func(text string, args ...interface{}) error {
		_, err := conn.Exec(ctx, text, args...)
		return err
	}
	number := func(text string, args ...interface{}) (n int64, err error) {
		err = conn.QueryRow(ctx, text, args...).Scan(&n)
		return
	}
	expect := func(wanted int64, text string, args ...interface{}) error {
		n, err := number(text, args...)
		if err != nil {
			return err
		}
		return same(n, wanted)
	}
	check("definitions", func() error {
		if err := run("CREATE TABLE by_pgx (id int PRIMARY KEY, t text, at timestamptz, j jsonb, tags text[], b bytea)"); err != nil {
			return err
		}
		return run("CREATE MATERIALIZED VIEW by_pgx_total AS SELECT count(*) AS c, sum(id) AS s FROM by_pgx")
	})
	check("TLS as asked for", func() error {
		var tls bool
		err := conn.QueryRow(ctx, "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()").Scan(&tls)
		if err != nil {
			return err
		}
		return same(tls, len(os.Args) > 2)
	})
	check("values of all kinds", func() error {
		at := time.Date(2024, 2, 3, 4, 5, 6, 789000000, time.UTC)
		given := map[string]int{"a": 1}
		err := run("INSERT INTO by_pgx VALUES ($1, $2, $3, $4, $5, $6)", 1, "xé", at, given, []string{"a", "b c"}, []byte{0, 255})
		if err != nil {
			return err
		}
		var text string
		var moment time.Time
		var data map[string]int
		var tags []string
		var raw []byte
		row := conn.QueryRow(ctx, "SELECT t, at, j, tags, b FROM by_pgx WHERE id = $1", 1)
		if err := row.Scan(&text, &moment, &data, &tags, &raw); err != nil {
			return err
		}
		return same([]interface{}{text, moment.UTC(), data, tags, raw}, []interface{}{"xé", at, given, []string{"a", "b c"}, []byte{0, 255}})
	})
	check("NULLs", func() error {
		var n *int32
		if err := conn.QueryRow(ctx, "SELECT $1::int", nil).Scan(&n); err != nil {
			return err
		}
		return same(n == nil, true)
	})
	check("views at once", func() error { return expect(1, "SELECT c FROM by_pgx_total") })
	check("batches", func() error {
		batch := &pgx.Batch{}
		for i := 2; i < 12; i++ {
			batch.Queue("INSERT INTO by_pgx (id) VALUES ($1)", i)
		}
		results := conn.SendBatch(ctx, batch)
		for i := 2; i < 12; i++ {
			if _, err := results.Exec(); err != nil {
				return err
			}
		}
		if err := results.Close(); err != nil {
			return err
		}
		return expect(11, "SELECT c FROM by_pgx_total")
	})
	check("COPY", func() error {
		rows := [][]interface{}{}
		for i := 100; i < 1100; i++ {
			rows = append(rows, []interface{}{int32(i), "copied"})
		}
		n, err := conn.CopyFrom(ctx, pgx.Identifier{"by_pgx"}, []string{"id", "t"}, pgx.CopyFromRows(rows))
		if err != nil {
			return err
		}
		return same(n, 1000)
	})
	check("errors", func() error {
		var found *pgconn.PgError
		if err := run("INSERT INTO by_pgx (id) VALUES (1)"); !errors.As(err, &found) {
			return fmt.Errorf("%v", err)
		}
		return same([]string{found.Code, found.ConstraintName}, []string{"23505", "by_pgx_pkey"})
	})
	check("transactions and savepoints", func() error {
		tx, err := conn.Begin(ctx)
		if err != nil {
			return err
		}
		inner, err := tx.Begin(ctx)
		if err != nil {
			return err
		}
		if _, err := inner.Exec(ctx, "DELETE FROM by_pgx"); err != nil {
			return err
		}
		if err := inner.Rollback(ctx); err != nil {
			return err
		}
		if err := tx.Commit(ctx); err != nil {
			return err
		}
		return expect(1011, "SELECT c FROM by_pgx_total")
	})
	check("a cancel", func() error {
		short, stop := context.WithTimeout(ctx, 200*time.Millisecond)
		defer stop()
		other, err := pgx.Connect(ctx, os.Args[1])
		if err != nil {
			return err
		}
		_, err = other.Exec(short, "SELECT pg_sleep(10)")
		return same(err != nil && short.Err() != nil, true)
	})
	check("notifications", func() error {
		if err := run("LISTEN by_pgx"); err != nil {
			return err
		}
		if err := run("SELECT pg_notify('by_pgx', 'hello')"); err != nil {
			return err
		}
		heard, err := conn.WaitForNotification(ctx)
		if err != nil {
			return err
		}
		return same(heard.Payload, "hello")
	})
	check("a pool", func() error {
		pool, err := pgxpool.Connect(ctx, os.Args[1])
		if err != nil {
			return err
		}
		defer pool.Close()
		answers := make(chan error)
		for i := 0; i < 20; i++ {
			go func(i int) {
				var n int
				err := pool.QueryRow(ctx, "SELECT $1::int", i).Scan(&n)
				if err == nil {
					err = same(n, i)
				}
				answers <- err
			}(i)
		}
		for i := 0; i < 20; i++ {
			if err := <-answers; err != nil {
				return err
			}
		}
		return nil
	})
	check("the end", func() error { return run("DROP TABLE by_pgx CASCADE") })
}
