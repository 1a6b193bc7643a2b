// SPDX-License-Identifier: Apache-2.0
// server_addon.js ADDON PEER: NooBaa's server as the library sees it (server_addon.cpp): by the main thread and by three workers at once, waiting
// and by events, with channels of threads and of requests; buffers go with the collector.  PEER: servers.cpp, which is the client of each.
'use strict'
const assert = require('assert')
const { spawn } = require('child_process')
const readline = require('readline')
const { Worker, isMainThread, threadId } = require('worker_threads')

const [addonPath, program] = process.argv.slice(2)

// As fill() of peer.hpp.
function filled (size, seed) {
  const b = Buffer.alloc(size)
  for (let i = 0; i < size; i++) b[i] = ((i + seed) * 17 + Math.floor(i / 239)) & 255
  return b
}

async function main () {
  const addon = require(addonPath)
  const client = spawn(program, ['peer'], { stdio: ['pipe', 'pipe', 'inherit'] })
  const lines = readline.createInterface({ input: client.stdout })[Symbol.asyncIterator]()
  const said = async () => (await lines.next()).value
  const ask = async text => { client.stdin.write(text + '\n'); assert.strictEqual(await said(), 'yes', text) }
  const token = await said()
  assert.strictEqual(token.length, 81)
  const start = BigInt('0x' + token.split(':')[0])
  const size = 300001
  for (let round = 0; round < 8; round++) {
    const [event, ofRequest] = [(round & 1) === 1, (round & 2) === 2]
    const memory = addon.buffer(size)
    const seed = threadId * 16 + round
    await ask(`fill ${seed} ${size}`)
    assert.strictEqual(await addon.move(true, memory, start, size, token, event, ofRequest), size)
    assert.ok(memory.equals(filled(size, seed)), `round ${round}`)
    filled(size, seed + 1000).copy(memory)
    assert.strictEqual(await addon.move(false, memory, start, size, token, event, ofRequest), size)
    await ask(`check ${seed + 1000} ${size}`)
    assert.strictEqual(await addon.move(false, memory, start + 8388608n, 1, token, false, ofRequest), -5)
    if (global.gc) global.gc()
  }
  client.stdin.end()
  assert.strictEqual(await new Promise(resolve => client.on('exit', resolve)), 0)
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
main().then(() => Promise.all(workers)).then(() => isMainThread && console.log('ok    server noobaa, Node.js'), e => {
  console.error(e)
  process.exit(1)
})
