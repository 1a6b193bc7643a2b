#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A page in Chromium that uploads and downloads by URLs and forms that boto3 has signed, from another origin (browser.py): the browser
# itself asks by preflights first, and shows the page nothing that the bucket's CORS rules do not allow.
# shellcheck source=tests/clients/clients.sh
. "$(dirname "$0")/../clients.sh"
for p in /usr/bin/chromium /usr/bin/chromedriver; do need $p; done
/usr/bin/python3 -c 'import selenium, boto3' 2>/dev/null || fail "no python3-selenium or python3-boto3: scripts/deps clients"
clients_daemon
/usr/bin/python3 "$ROOT/tests/clients/reports/browser.py" || fail "answers that a browser minds"
assert_alive
