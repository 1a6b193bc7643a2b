# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034,SC2154
# The part of bench/run that does signed_cpu, list_1m and http_*; sourced by it.
#   BENCH_KEYS=1000000     keys of list_1m           BENCH_HTTP_MIB=1024    objects that http_get_* reads, on each side

# nginx with files: GET past the page cache, PUT by WebDAV, no fsync.
start_nginx_files() {
	local port i
	command -v nginx >/dev/null || PATH=$PATH:/usr/sbin
	mkdir -p "$T/www/bkt"
	for i in 1 2 3 4 5; do
		port=$((20000 + RANDOM % 20000))
		cat >"$T/nginx-files.conf" <<-END
			$([ "$(id -u)" != 0 ] || echo 'user root;')
			worker_processes 1;
			worker_cpu_affinity 01;
			thread_pool default threads=32;
			daemon off;
			pid $T/nginx-files.pid;
			error_log $T/nginx-files.log;
			events { worker_connections 1024; }
			http {
				access_log off;
				keepalive_requests 1000000000;
				client_body_temp_path $T/www/tmp; proxy_temp_path $T/nginx-proxy; fastcgi_temp_path $T/nginx-f;
				uwsgi_temp_path $T/nginx-u; scgi_temp_path $T/nginx-s;
				client_max_body_size 0; client_body_buffer_size 1m;
				aio threads; directio 4k; output_buffers 4 1m; sendfile off;
				server { listen 127.0.0.1:$port; root $T/www; location / { dav_methods PUT; } }
			}
		END
		nginx -c "$T/nginx-files.conf" -e "$T/nginx-files.log" &
		FILES_PID=$!
		FILES=127.0.0.1:$port
		for _ in $(seq 100); do
			[ ! -s "$T/nginx-files.pid" ] || return 0
			kill -0 "$FILES_PID" 2>/dev/null || break
			sleep 0.05
		done
	done
	cat "$T/nginx-files.log" >&2
	fail "nginx did not start"
}

# A daemon of its own for figures that want another configuration; the words are sed expressions for the file.
own_daemon() {
	write_config
	sed -i "$@" "$T/gantryd.yaml"
}

run_signed() {
	echo "- { access_key: AKBENCH, secret_key: bench/secret0123456789 }" >"$T/keys.yaml"
	chmod 0600 "$T/keys.yaml"
	own_daemon -e "\$a auth: { credentials_file: \"$T/keys.yaml\" }"
	format_store
	daemon_run
	make_buckets
	run nic "$BUILD/bench/load" -s "$S3" -p "$DAEMON_PID" -c "$BUILD/softnicctl" -r "$T/raw" signed_cpu
	stop_daemon
	rm -rf "$T/disk0"
}

run_list() {
	local keys=${BENCH_KEYS:-1000000} bytes=$((8 << 30))
	"$BUILD/bench/list" fill "$T/disk0" "$keys" $bytes || fail "bench/list fill"
	cp -r --sparse=always "$T/disk0" "$T/walked"
	own_daemon -e 's/index: 64MiB/index: 1GiB/'
	daemon_run
	run "$BUILD/bench/list" list "$S3" "$T/walked" "$keys" $bytes
	stop_daemon
	rm -rf "$T/disk0" "$T/walked"
}

run_http() { # FIGURE...
	# shellcheck disable=SC2016
	own_daemon -e '$a s3: { etag: random }'
	format_store
	daemon_run
	make_buckets
	start_nginx_files
	run "$BUILD/bench/http" -s "$S3" -n "$FILES" -d "$T/www" "$@"
	kill "$FILES_PID"
	wait "$FILES_PID"
	stop_daemon
	rm -rf "$T/disk0" "$T/www"
}

run_s3() { # FIGURE...
	local f http=()
	for f in "$@"; do
		case $f in
		signed_cpu) run_signed ;;
		list_1m) run_list ;;
		http_*) http+=("$f") ;;
		esac
	done
	[ ${#http[@]} = 0 ] || run_http "${http[@]}"
}
