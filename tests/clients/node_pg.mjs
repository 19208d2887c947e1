// What pg, pg-cursor and pg-copy-streams do: a line "ok NAME" or "failed NAME: why" for each.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { text } from 'node:stream/consumers'
import { pipeline } from 'node:stream/promises'
import { Readable } from 'node:stream'

const [folder, port, password, root] = process.argv.slice(2)
const load = createRequire(folder + '/')
const pg = load('pg'), Cursor = load('pg-cursor'), copy = load('pg-copy-streams')
const options = { host: '127.0.0.1', port: Number(port), user: 'postgres', database: 'postgres' }
if (root) Object.assign(options, { password, ssl: { ca: readFileSync(root, 'utf8') } })

async function check(name, what) {
  try { await what(); console.log(`ok ${name}`) } catch (error) { console.log(`failed ${name}: ${error.message}`) }
}

const client = new pg.Client(options)
await client.connect()
await client.query('CREATE TABLE node_pg (id int PRIMARY KEY, t text, at timestamptz, j jsonb, tags text[], b bytea, n numeric)')
await client.query('CREATE MATERIALIZED VIEW node_pg_total AS SELECT count(*) AS c, sum(n) AS s FROM node_pg')

await check('TLS as asked for', async () => {
  const { rows } = await client.query('SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()')
  assert.equal(rows[0].ssl, Boolean(root))
})
await check('values of all kinds', async () => {
  const at = new Date('2024-02-03T04:05:06.789Z')
  const given = [1, 'x\u00e9', at, { a: [1, null] }, ['a', 'b "c"'], Buffer.from([0, 255]), '1.50']
  await client.query('INSERT INTO node_pg VALUES ($1, $2, $3, $4, $5, $6, $7)', given)
  const { rows, rowCount } = await client.query('SELECT * FROM node_pg WHERE id = $1', [1])
  assert.equal(rowCount, 1)
  assert.deepEqual(Object.values(rows[0]), given)
})
await check('NULLs, and bigint as text', async () => {
  const { rows } = await client.query('SELECT $1::int AS a, 9007199254740993 AS b', [null])
  assert.deepEqual(rows, [{ a: null, b: '9007199254740993' }])
})
await check('views at once', async () => {
  assert.deepEqual((await client.query('SELECT * FROM node_pg_total')).rows, [{ c: '1', s: '1.50' }])
})
await check('prepared statements', async () => {
  for (let i = 2; i < 5; i++) await client.query({ name: 'add', text: 'INSERT INTO node_pg (id, n) VALUES ($1, $2)', values: [i, i] })
  assert.equal((await client.query('SELECT c FROM node_pg_total')).rows[0].c, '4')
})
await check('errors', async () => {
  const error = await client.query('INSERT INTO node_pg (id) VALUES (1)').catch((e) => e)
  assert.deepEqual([error.code, error.table, error.constraint], ['23505', 'node_pg', 'node_pg_pkey'])
})
await check('transactions', async () => {
  await client.query('BEGIN')
  await client.query('DELETE FROM node_pg')
  await client.query('ROLLBACK')
  assert.equal((await client.query('SELECT c FROM node_pg_total')).rows[0].c, '4')
})
await check('several statements', async () => {
  const results = await client.query('SELECT 1 AS a; SELECT 2 AS a')
  assert.deepEqual(results.map((r) => r.rows[0].a), [1, 2])
})
await check('cursors', async () => {
  const cursor = client.query(new Cursor('SELECT g FROM generate_series(1, $1::int) g', [250]))
  let seen = 0
  for (let rows = await cursor.read(100); rows.length; rows = await cursor.read(100)) seen += rows.length
  assert.equal(seen, 250)
})
await check('COPY in and out', async () => {
  const lines = Array.from({ length: 1000 }, (_, i) => `${i + 10}\tcopied\n`)
  await pipeline(Readable.from(lines), client.query(copy.from('COPY node_pg (id, t) FROM STDIN')))
  const written = await text(client.query(copy.to('COPY (SELECT id FROM node_pg ORDER BY id DESC LIMIT 2) TO STDOUT')))
  assert.equal(written, '1009\n1008\n')
})
await check('notifications', async () => {
  const heard = new Promise((resolve) => client.once('notification', resolve))
  await client.query('LISTEN node_pg')
  await client.query("SELECT pg_notify('node_pg', 'hello')")
  assert.equal((await heard).payload, 'hello')
})
await check('a pool', async () => {
  const pool = new pg.Pool({ ...options, max: 5 })
  const all = await Promise.all(Array.from({ length: 50 }, (_, i) => pool.query('SELECT $1::int AS i', [i])))
  assert.deepEqual(all.map((r) => r.rows[0].i), Array.from({ length: 50 }, (_, i) => i))
  await pool.end()
})
await check('a timeout', async () => {
  const error = await client.query("SET statement_timeout = '100ms'; SELECT pg_sleep(10)").catch((e) => e)
  assert.equal(error.code, '57014')
})
await client.query('DROP TABLE node_pg CASCADE')
await client.end()
