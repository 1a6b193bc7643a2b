#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The JavaScript clients that npm has today (js_client.mjs), over HTTP and over HTTPS, where bodies come in aws-chunked frames that are
# not signed.
# shellcheck source=tests/clients/clients.sh
. "$(dirname "$0")/clients.sh"
command -v npm >/dev/null || fail "no npm: scripts/deps clients"
# shellcheck disable=SC2034
DISK_SIZE=4GiB TLS=1
mapfile -t settings < <(npm_settings)
clients_daemon
cd "$T" || exit 1
cp "$ROOT/tests/clients/js_client.mjs" .
env "${settings[@]}" npm install --no-fund --no-audit --loglevel=error @aws-sdk/client-s3 @aws-sdk/lib-storage @aws-sdk/s3-request-presigner minio ||
	fail "npm install"
for package in @aws-sdk/client-s3 minio; do echo "$package $(node -p "require('./node_modules/$package/package.json').version")"; done
for url in "$URL_S3" "$URL_TLS"; do
	NODE_EXTRA_CA_CERTS=$T/tls.crt node --no-warnings js_client.mjs "$url" "$AWS_ACCESS_KEY_ID" "$AWS_SECRET_ACCESS_KEY" || fail "over $url"
done
assert_alive
