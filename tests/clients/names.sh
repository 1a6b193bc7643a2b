#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Every bucket that a recipe of docs/recipes.md names, of those that no test runs as well, can be made: by gantry mb, and by a request of another
# client for those that it did not make.
# shellcheck source=tests/clients/clients.sh
. "$(dirname "$0")/clients.sh"
clients_daemon
"$ROOT/scripts/check-recipes" --buckets >"$T/buckets" || fail "$(cat "$T/buckets")"
grep -qx from-restic "$T/buckets" || fail "the buckets of the page were not found: $(cat "$T/buckets")"
while read -r bucket; do
	"$BUILD/gantry" --access-key "$AWS_ACCESS_KEY_ID" --secret "$AWS_SECRET_ACCESS_KEY" mb "$URL_S3/$bucket" 2>"$T/said" || fail "$bucket: $(cat "$T/said")"
	signed_curl "$bucket" --head >"$T/head" || fail "$bucket was made and is not there"
done <"$T/buckets"
# The names of the test's own making: one that cannot exist is found.
! "$BUILD/gantry" --access-key "$AWS_ACCESS_KEY_ID" --secret "$AWS_SECRET_ACCESS_KEY" mb "$URL_S3/kv" 2>"$T/said" || fail "a bucket of two letters"
grep -q InvalidBucketName "$T/said" || fail "$(cat "$T/said")"
