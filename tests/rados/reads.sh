#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# By token a data object is read at once, into a buffer of 4 MiB: objects around that size, whole and in ranges, from every place to
# every place; where a request may have fewer than eight pieces, or no four buffers that lie side by side are free, in pieces of
# 1 MiB.  The first read goes out beside the look.  Over HTTP the same bytes.  (That they give their buffers back at the deadline is failure's.)
MORE='limits: { s3_total: 60s, s3_progress: 30s }'
. "$(dirname "$0")/lib.sh"
start_daemon

reads() { metric gantry_store_operations_total 'disk="gantry.data",op="read"'; }
beside() { number_of parallel_reads; }
# GETs by token of a whole object are so many reads, of which the first goes out beside the look ($5: 0: it does not).
reads_are() {
	local before after looks
	before=$(reads) looks=$(beside)
	raw <<-END
		timeout 60s
		window g $2
		request GET /bkt/$1 x-amz-rdma-token:@g
		expect status 200
		expect window g pattern:$2
	END
	after=$(reads)
	assert_eq $((after - before)) "$3" "reads for $1, ${4:-as it is}"
	assert_eq $(($(beside) - looks)) "${5:-1}" "reads beside a look for $1, ${4:-as it is}"
}
sizes='1048577 2097152 2097153 4089446 4194303 4194304 4194305 4299161 9437184 67108864'
for n in $sizes; do
	raw <<-END
		timeout 60s
		window w $n pattern:$n
		request PUT /bkt/o$n x-amz-rdma-token:@w content-length:0
		expect status 200
	END
	bytes "pattern:$n" "$n" | cmp - <(curl_s3 "/bkt/o$n") || fail "size $n over HTTP"
done
# The rest of an object that is no more than half of a read comes in pieces of 1 MiB.
reads_are o1048577 1048577 2
reads_are o2097152 2097152 2
reads_are o2097153 2097153 1
reads_are o4089446 4089446 1
reads_are o4194303 4194303 1
reads_are o4194304 4194304 1
reads_are o4194305 4194305 2
reads_are o4299161 4299161 2
reads_are o9437184 9437184 3
reads_are o67108864 67108864 16

# ---- ranges: over borders of data objects, and of granules
for r in 0-0 4194303-4194304 4194304-8388607 1-9437183 65535-4259840 1048576-5242879 3145727-9437182 8388607-8388608 9437183-9437183; do
	a=${r%-*} b=${r#*-}
	raw <<-END
		timeout 60s
		window g $((b - a + 1))
		request GET /bkt/o9437184 x-amz-rdma-token:@g range:bytes=$r
		expect status 206
		expect window g pattern:9437184 $a $((b - a + 1))
	END
	bytes pattern:9437184 9437184 | tail -c "+$((a + 1))" | head -c "$((b - a + 1))" | cmp - <(curl_s3 /bkt/o9437184 -r "$r") || fail "range $r over HTTP"
done

# ---- copies: of a part of it, whose granules are not the source's
up=$(curl_s3 '/bkt/copied?uploads' -X POST | sed -n 's:.*<UploadId>\(.*\)</UploadId>.*:\1:p')
e=$(curl_s3 "/bkt/copied?partNumber=1&uploadId=$up" -X PUT -H 'x-amz-copy-source: /bkt/o9437184' -H 'x-amz-copy-source-range: bytes=4000000-9437183' | sed -n 's:.*<ETag>\(.*\)</ETag>.*:\1:p')
curl_s3 "/bkt/copied?uploadId=$up" -d "<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>$e</ETag></Part></CompleteMultipartUpload>" | grep -q '<ETag>' || fail "the copy"
raw <<-END
	timeout 60s
	window g 5437184
	request GET /bkt/copied x-amz-rdma-token:@g
	expect status 200
	expect window g pattern:9437184 4000000 5437184
END

# ---- more at once than there is room for
many() {
	raw <<-END
		timeout 60s
		windows g 24 9437184
		connections 24
		parallel 24 GET /bkt/o9437184 x-amz-rdma-token:@g%i
		expect status 200
		expect window g0 pattern:9437184
		expect window g11 pattern:9437184
		expect window g23 pattern:9437184
	END
}
many
wait_for 10 nothing_is_held
stop_daemon
sed -i 's/buffers: 64MiB/buffers: 20MiB/' "$T/gantryd.yaml"
grep -q 'buffers: 20MiB' "$T/gantryd.yaml" || fail "the configuration is another one"
daemon_run
many
many
wait_for 10 nothing_is_held
stop_daemon
sed -i 's/s3_total: 60s/pieces_per_request: 7, s3_total: 60s/' "$T/gantryd.yaml"
daemon_run
# A gateway has to see a record first.
reads_are o9437184 9437184 9 'with seven pieces for a request' 0
reads_are o9437184 9437184 9 'with seven pieces for a request'
many
wait_for 10 nothing_is_held
stop_daemon
