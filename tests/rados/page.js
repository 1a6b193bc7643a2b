// SPDX-License-Identifier: Apache-2.0
// What the status page shows, as text, without a browser: its script runs on a document that only keeps what it is given.
//
//	node page.js SOCKET page.html	SOCKET: of the daemon's admin listener; prints "ID: text" of each part after two samples
'use strict';
const fs = require('fs'), http = require('http'), vm = require('vm');
const [socketPath, page] = process.argv.slice(2);

class Part {
	constructor() { this.all = []; this.style = {}; this.dataset = {}; this.classList = { add() {}, remove() {} }; }
	append(...more) { this.all.push(...more); }
	replaceChildren(...all) { this.all = all; }
	setAttribute() {}
	get clientWidth() { return 600; }
	get textContent() { return this.all.map(x => x instanceof Part ? x.textContent : String(x)).join(' ').replace(/ +/g, ' ').trim(); }
	set textContent(text) { this.all = [text]; }
}
const parts = {}, body = new Part();
const fetch = path => new Promise((done, failed) => {
	http.get({ socketPath, path }, r => {
		let text = '';
		r.on('data', d => { text += d; });
		r.on('end', () => done({ text: () => text, json: () => JSON.parse(text) }));
	}).on('error', failed);
});
vm.runInNewContext(/<script>([^]*)<\/script>/.exec(fs.readFileSync(page, 'utf8'))[1], {
	document: { getElementById: id => parts[id] ||= new Part(), createElement: () => new Part(), createElementNS: () => new Part(), querySelectorAll: () => [], body },
	fetch, performance, setTimeout,
});
setInterval(() => {
	if (!(body.dataset.turns >= 2)) return;
	for (const id in parts) console.log(`${id}: ${parts[id].textContent}`);
	process.exit(0);
}, 100);
setTimeout(() => { console.log('no two samples: ' + parts.health?.textContent); process.exit(1); }, 30000);
