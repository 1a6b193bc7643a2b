#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What clients that people use rely on, beyond the letter of S3's reference: byte by byte what minio-go, the SDKs for JavaScript,
# boto3, Terraform and others send and expect.  By curl on the real daemon.
. "$(dirname "$0")/lib.sh"
BUCKETS="bkt"
start_daemon
xml() { tr -d '\n' | sed -n "s/.*<$1>\([^<]*\)<\/$1>.*/\1/p" | sed 's/&quot;//g'; }
code_of() { curl -sS "${@:2}" "$URL_S3$1" | xml Code; }

# ---- minio-go: a trailer whose line ends in LF, and an empty line behind it ----
printf '6\r\nhello\n\r\n0\r\nx-amz-checksum-crc32:NjowIA==\n\r\n\r\n' >"$T/chunks"
assert_status PUT /bkt/lf 200 -H 'x-amz-trailer: x-amz-checksum-crc32' --data-binary "@$T/chunks" -H 'x-amz-decoded-content-length: 6' \
	-H 'x-amz-content-sha256: STREAMING-UNSIGNED-PAYLOAD-TRAILER'
assert_eq "$(curl_s3 /bkt/lf)" hello

assert_alive
stop_daemon
