#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# make check-clients [T=name]: each packaged client against a daemon of its own, each recipe of docs/recipes.md that can be run, the
# RDMA clients of rdma/clients.toml as their sources show them, and the programs written to cuObject's client; what fails is named at the
# end.  T: those whose name contains it.
cd "$(dirname "$0")" || exit 2
only=${T:-}
unset T
failed=() passed=0
mapfile -t recipes < <(../../scripts/recipe --list)
for c in names curl boto3 s3cmd rclone aws js reports/js reports/boto3 reports/browser reports/sigv2 python rdma/play cuobject/play "${recipes[@]/#/recipes }"; do
	case $c in *"$only"*) ;; *) continue ;; esac
	began=$SECONDS
	read -r program section <<<"$c"
	if out=$(./"$program.sh" ${section:+"$section"} 2>&1); then
		echo "ok    clients/$c ($((SECONDS - began)) s)"
		passed=$((passed + 1))
	else
		echo "FAIL  clients/$c"
		tail -n 40 <<<"$out" | sed 's/^/      /'
		failed+=("$c")
	fi
done
[ ${#failed[@]} = 0 ] || printf 'check-clients: failed: %s\n' "${failed[@]}"
echo "check-clients: $passed passed, ${#failed[@]} failed, 0 skipped"
[ ${#failed[@]} = 0 ]
