// What postgres.js does: a line "ok NAME" or "failed NAME: why" for each.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { text } from 'node:stream/consumers'
import { pipeline } from 'node:stream/promises'
import { Readable } from 'node:stream'

const [folder, port, password, root] = process.argv.slice(2)
const postgres = createRequire(folder + '/')('postgres')
const options = { host: '127.0.0.1', port: Number(port), user: 'postgres', db: 'postgres', onnotice: () => {} }
if (root) Object.assign(options, { password, ssl: { ca: readFileSync(root, 'utf8') } })
const sql = postgres(options)

async function check(name, what) {
  try { await what(); console.log(`ok ${name}`) } catch (error) { console.log(`failed ${name}: ${error.message}`) }
}

await sql`CREATE TABLE node_js (id int PRIMARY KEY, t text, at timestamptz, j jsonb, tags text[], b bytea, n numeric)`
await sql`CREATE MATERIALIZED VIEW node_js_total AS SELECT count(*) AS c, sum(n) AS s FROM node_js`

await check('TLS as asked for', async () => {
  assert.equal((await sql`SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()`)[0].ssl, Boolean(root))
})
await check('values of all kinds', async () => {
  const at = new Date('2024-02-03T04:05:06.789Z')
  const row = { id: 1, t: 'x\u00e9', at, j: { a: [1, null] }, tags: ['a', 'b "c"'], b: Buffer.from([0, 255]), n: '1.50' }
  await sql`INSERT INTO node_js ${sql(row)}`
  assert.deepEqual({ ...(await sql`SELECT * FROM node_js WHERE id = ${1}`)[0] }, row)
})
await check('several rows at once', async () => {
  const given = [2, 3, 4].map((id) => ({ id, n: id }))
  assert.equal((await sql`INSERT INTO node_js ${sql(given, 'id', 'n')}`).count, 3)
  assert.deepEqual((await sql`SELECT id FROM node_js WHERE id IN ${sql([2, 3, 9])} ORDER BY id`).map((r) => r.id), [2, 3])
})
await check('views at once', async () => {
  assert.deepEqual({ ...(await sql`SELECT * FROM node_js_total`)[0] }, { c: '4', s: '10.50' })
})
await check('updates by columns', async () => {
  await sql`UPDATE node_js SET ${sql({ t: 'new', n: '2.50' })} WHERE id = 1`
  assert.equal((await sql`SELECT s FROM node_js_total`)[0].s, '11.50')
})
await check('errors', async () => {
  const error = await sql`INSERT INTO node_js (id) VALUES (1)`.catch((e) => e)
  assert.deepEqual([error.code, error.table_name, error.constraint_name], ['23505', 'node_js', 'node_js_pkey'])
})
await check('transactions and savepoints', async () => {
  await sql.begin(async (own) => {
    await own`DELETE FROM node_js WHERE id = 4`
    await own.savepoint((inner) => inner`SELECT 1 / 0`).catch(() => {})
    assert.equal((await own`SELECT c FROM node_js_total`)[0].c, '3')
    throw new Error('back')
  }).catch((e) => assert.equal(e.message, 'back'))
  assert.equal((await sql`SELECT c FROM node_js_total`)[0].c, '4')
})
await check('cursors', async () => {
  let seen = 0
  for await (const rows of sql`SELECT g FROM generate_series(1, 250) g`.cursor(100)) seen += rows.length
  assert.equal(seen, 250)
})
await check('COPY in and out', async () => {
  const lines = Array.from({ length: 1000 }, (_, i) => `${i + 10}\tcopied\n`)
  await pipeline(Readable.from(lines), await sql`COPY node_js (id, t) FROM STDIN`.writable())
  const out = await sql`COPY (SELECT id FROM node_js ORDER BY id DESC LIMIT 2) TO STDOUT`.readable()
  assert.equal(await text(out), '1009\n1008\n')
})
await check('notifications', async () => {
  const heard = new Promise((resolve) => sql.listen('node_js', resolve, () => sql.notify('node_js', 'hello')))
  assert.equal(await heard, 'hello')
})
await check('a cancel', async () => {
  const query = sql`SELECT pg_sleep(10)`
  setTimeout(() => query.cancel(), 200)
  assert.equal((await query.catch((e) => e)).code, '57014')
})
await check('descriptions', async () => {
  const found = await sql`SELECT id, t FROM node_js WHERE n = ${1}`.describe()
  assert.deepEqual([found.types, found.columns.map((c) => c.name)], [[1700], ['id', 't']])
})
await check('many at once', async () => {
  const all = await Promise.all(Array.from({ length: 50 }, (_, i) => sql`SELECT ${i}::int AS i`))
  assert.deepEqual(all.map((r) => r[0].i), Array.from({ length: 50 }, (_, i) => i))
})
await sql`DROP TABLE node_js CASCADE`
await sql.end()
