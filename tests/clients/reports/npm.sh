# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# The packages that the file npm names, in build/clients/npm-*, where they stay from one run to the next: sourced after clients.sh, before
# clients_daemon, which sets HOME.
command -v npm >/dev/null || fail "no npm: scripts/deps clients"
modules=$ROOT/build/clients/npm-$(md5sum <"$ROOT/tests/clients/reports/npm" | cut -c1-12)
if [ ! -e "$modules/complete" ]; then
	rm -rf "$modules"
	mkdir -p "$modules"
	xargs npm install --prefix "$modules" --no-fund --no-audit --ignore-scripts --loglevel=error <"$ROOT/tests/clients/reports/npm" || fail "npm install"
	touch "$modules/complete"
fi

# Runs reports/NAME.mjs by node, or by the program that is given.
js() { # NAME [PROGRAM]
	cp -u "$ROOT"/tests/clients/reports/*.mjs "$T"
	ln -sfn "$modules/node_modules" "$T/node_modules"
	(cd "$T" && "${2:-node}" "$1.mjs")
}
