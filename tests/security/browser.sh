#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# claims TM30, TM31: a web page of a stranger, in the browser of somebody who reaches the daemon as it is installed (unsigned requests on loopback, the
# admin listener beside it): what a browser sends for it without asking first, and what it sends under a name that was pointed here.
# What carries a signature goes on.
. "$(dirname "$0")/../system/lib.sh"

echo '- { access_key: AKPAGE, secret_key: page-secret-1 }' >"$T/keys.yaml"
chmod 0600 "$T/keys.yaml"
MORE="auth: { credentials_file: \"$T/keys.yaml\" }"
start_daemon
curl_s3 /bkt/victim -d bytes -X PUT
curl_s3 '/bkt?cors' -X PUT -d '<CORSConfiguration><CORSRule><AllowedOrigin>https://app.test</AllowedOrigin>
	<AllowedMethod>POST</AllowedMethod></CORSRule></CORSConfiguration>'

evil=(-H 'origin: http://evil.test' -H 'sec-fetch-site: cross-site' -H 'sec-fetch-mode: no-cors' -H 'referer: http://evil.test/')
# want STATUS WORDS...: curl with those words answers so; a refusal says what it is about.
want() {
	local have
	have=$(curl -sS --max-time 30 -o "$T/out" -w '%{http_code}' "${@:2}")
	assert_eq "$have" "$1" "${*:2}: $(<"$T/out")"
	[ "$1" != 403 ] || grep -qE '<Code>AccessDenied</Code><Message>(Host|Origin|Sec-Fetch-Site): ' "$T/out" || fail "$(<"$T/out")"
}

# ---- writes without preflight ----
want 403 "$URL_S3/bkt" "${evil[@]}" -F key=planted -F 'file=bold;type=text/html'
doc='<Delete><Object><Key>victim</Key></Object></Delete>'
want 400 "$URL_S3/bkt?delete" "${evil[@]}" -H 'content-type: text/plain' -d "$doc"
# A page cannot have that header sent without asking; as if one could.
want 403 "$URL_S3/bkt?delete" "${evil[@]}" -H 'content-type: text/plain' -H "content-md5: $(printf %s "$doc" | openssl md5 -binary | base64)" -d "$doc"
want 403 "$URL_S3/bkt/planted?uploads" "${evil[@]}" -X POST
# A browser that sends no Sec-Fetch-Site, and one that hides the origin.
want 403 "$URL_S3/bkt" -H 'origin: http://evil.test' -F key=planted -F 'file=x'
want 403 "$URL_S3/bkt" -H 'origin: null' -F key=planted -F 'file=x'
assert_status GET /bkt/planted 404
assert_status GET /bkt/victim 200
assert_eq "$(curl_s3 '/bkt?uploads' | grep -c '<Upload>')" 0

# ---- a name that was pointed here ----
want 403 "$URL_S3/bkt/victim" -H "host: evil.test:${S3##*:}"
want 403 "$URL_S3/" -H "host: evil.test:${S3##*:}"
want 200 "$URL_S3/bkt/victim" -H "host: localhost:${S3##*:}"
assert_eq "$(status_of_scal GET /victim -H "host: evil.test:${SCAL##*:}")" 403
assert_eq "$(status_of_scal GET /victim -H "host: localhost:${SCAL##*:}")" 404
no_host() {
	exec 9<>"/dev/tcp/${ADMIN%:*}/${ADMIN##*:}"
	printf 'GET %s HTTP/1.0\r\n\r\n' "$1" >&9
	timeout 20 head -n 1 <&9
	exec 9>&-
}
for page in / /status /requests /config /metrics /livez /control/log-level; do
	have=$(curl_admin $page -o "$T/out" -w '%{http_code}' -H "host: evil.test:${ADMIN##*:}")
	assert_eq "$have" 403 "$page of the admin listener"
	grep -q '^{"error":"Host: ' "$T/out" || fail "$(<"$T/out")"
	# The socket has a mode; a name means nothing there.
	assert_eq "$(curl -sS --max-time 30 -o /dev/null -w '%{http_code}' --unix-socket "$T/admin.sock" http://evil.test$page)" 200 "$page over the socket"
	assert_eq "$(curl_admin $page -o /dev/null -w '%{http_code}' -H "host: localhost:${ADMIN##*:}")" 200 "$page"
	# A load balancer that says no name at all.
	assert_match "$(no_host $page)" '^HTTP/1.[01] 200 ' "$page without Host"
done

# ---- with leave: CORS rules of the bucket, a signature ----
want 204 "$URL_S3/bkt" -H 'origin: https://app.test' -H 'sec-fetch-site: cross-site' -F key=app -F file=x
assert_eq "$(curl_s3 /bkt/app)" x
for way in "-P 60 -m unsigned" "-m unsigned -H evil.test"; do
	# shellcheck disable=SC2086
	assert_eq "$("$BUILD/tools/s3sign" -s "$S3" -k AKPAGE -p page-secret-1 $way -b "$T/keys.yaml" PUT /bkt/signed \
		origin:http://evil.test sec-fetch-site:cross-site)" 200 "signed: $way"
done
/usr/bin/python3 - "$URL_S3" <<-END || fail "a form with a policy"
	import sys, boto3, urllib.request
	from botocore.config import Config
	s3 = boto3.client("s3", endpoint_url=sys.argv[1], region_name="us-east-1", aws_access_key_id="AKPAGE",
	    aws_secret_access_key="page-secret-1", config=Config(signature_version="s3v4", s3={"addressing_style": "path"}))
	form = s3.generate_presigned_post("bkt", "posted", ExpiresIn=60)
	body = "".join(f'--x\r\nContent-Disposition: form-data; name="{k}"\r\n\r\n{v}\r\n' for k, v in form["fields"].items())
	body += '--x\r\nContent-Disposition: form-data; name="file"; filename="f"\r\n\r\nbytes\r\n--x--\r\n'
	r = urllib.request.Request(form["url"], body.encode(), {"Content-Type": "multipart/form-data; boundary=x",
	    "Origin": "http://evil.test", "Sec-Fetch-Site": "cross-site"})
	assert urllib.request.urlopen(r).status == 204
END
assert_eq "$(curl_s3 /bkt/posted)" bytes
assert_alive
