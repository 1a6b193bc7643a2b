// SPDX-License-Identifier: Apache-2.0
// addon.js ADDON HOST:PORT: NooBaa as the library sees it (addon.cpp): by the main thread and by three workers at once, both modes.
'use strict'
const assert = require('assert')
const http = require('http')
const { Worker, isMainThread, threadId } = require('worker_threads')

const [addonPath, server] = process.argv.slice(2)
const [host, port] = server.split(':')

function send (method, path, descriptor) {
  return new Promise((resolve, reject) => {
    const headers = descriptor ? { 'x-amz-rdma-token': descriptor } : {}
    if (method === 'PUT') headers['content-length'] = 0
    const request = http.request({ host, port, method, path, headers, agent: false }, reply => {
      const parts = []
      reply.on('data', d => parts.push(d))
      reply.on('end', () => resolve({ status: reply.statusCode, reply: reply.headers['x-amz-rdma-reply'], body: Buffer.concat(parts) }))
    })
    request.on('error', reject)
    request.end()
  })
}

async function byRdma (method, path, descriptor) {
  const r = await send(method, path, descriptor)
  assert.ok(r.status >= 200 && r.status < 300 && r.reply && r.reply[0] === '2', `${method} ${path}: ${r.status} ${r.reply}`)
}

async function main () {
  const addon = require(addonPath)
  const size = 300001
  const memory = Buffer.alloc(2 * size)
  for (let i = 0; i < size; i++) memory[i] = (i * 7 + threadId * 31) & 255
  assert.strictEqual(addon.connected(), true)
  // NooBaa asks so whether memory is registered.
  assert.strictEqual(addon.most(memory), -1)
  assert.strictEqual(addon.type(memory), 0)
  assert.strictEqual(addon.register(memory), 0)
  assert.ok(addon.most(memory) >= size)
  for (const event of [false, true]) {
    const path = `/bkt/noobaa.${threadId}.${event}`
    const step = async (put, offset) => {
      const method = put ? 'PUT' : 'GET'
      const asked = (descriptor, answer) => byRdma(method, path, descriptor).then(() => answer(size), () => answer(-5))
      const done = await addon.move(put, memory, offset, size, event, asked)
      assert.strictEqual(done.moved, event ? 0 : size)
      assert.strictEqual(done.descriptor.length, 81)
      if (event) await byRdma(method, path, done.descriptor)
    }
    memory.fill(0, size)
    await step(true, 0)
    assert.ok((await send('GET', path)).body.equals(memory.subarray(0, size)))
    await step(false, size)
    assert.ok(memory.subarray(0, size).equals(memory.subarray(size)))
    // What JavaScript answers is what the call returns.
    const refused = await addon.move(true, memory, 0, size, false, (_, answer) => answer(-42))
    assert.strictEqual(refused.moved, -42)
  }
  assert.strictEqual(addon.deregister(memory), 0)
}

const workers = []
if (isMainThread) {
  for (let i = 0; i < 3; i++) {
    workers.push(new Promise((resolve, reject) => {
      const w = new Worker(__filename, { argv: process.argv.slice(2) })
      w.on('error', reject)
      w.on('exit', code => (code ? reject(new Error(`a worker ended with ${code}`)) : resolve()))
    }))
  }
}
main().then(() => Promise.all(workers)).then(() => isMainThread && console.log('ok    noobaa'), e => {
  console.error(e)
  process.exit(1)
})
