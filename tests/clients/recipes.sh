#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tests/clients/recipes.sh SECTION: follows that section of docs/recipes.md word for word against a daemon of its own, and then looks
# whether what came back, and what the server has by another client's word, is what went in.  What a recipe needs around it is here, by
# its name; one that has nothing here has no test, and fails.
# shellcheck source=tests/clients/clients.sh
. "$(dirname "$0")/clients.sh"
section=${1:?SECTION}
FOLLOW=() ENVIRONMENT=()
# HOME is the test's from clients_daemon on.
case $section in *[jJ][sS] | *JavaScript) npmrc=$(npm config get userconfig) npm_cache=$(npm config get cache) ;; esac

same_big() { assert_same "$T/home/big" "$T/home/big.back"; }
same_tree() { diff -r "$T/home/tree" "$T/home/${1:-tree.back}" || fail "the tree came back different"; }
served() { signed_curl "$1" | cmp - "$T/home/$2" || fail "the server has another $1"; }
in_parts() { # KEY: it was stored as a multipart upload
	case $(signed_curl "$1" --head | grep -i '^etag:') in *-[0-9]*) ;; *) fail "$1 did not go up in parts" ;; esac
}

free_port() { /usr/bin/python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }

# An image of one layer, which is larger than a chunk of the registry's, in home/image as skopeo's `dir:` has it.
image() {
	local dir=$T/home/image layer config diff
	mkdir -p "$dir" "$T/layer/opt"
	bytes pattern:11 20000000 >"$T/layer/opt/big"
	tar --sort=name --owner=0 --group=0 --mtime=@0 -C "$T/layer" -cf "$T/layer.tar" opt
	diff=$(sha256sum <"$T/layer.tar" | cut -d' ' -f1)
	gzip -n1 <"$T/layer.tar" >"$T/layer.gz"
	layer=$(sha256sum <"$T/layer.gz" | cut -d' ' -f1)
	mv "$T/layer.gz" "$dir/$layer"
	printf '{"architecture":"amd64","os":"linux","config":{},"rootfs":{"type":"layers","diff_ids":["sha256:%s"]}}' "$diff" >"$T/config"
	config=$(sha256sum <"$T/config" | cut -d' ' -f1)
	mv "$T/config" "$dir/$config"
	cat >"$dir/manifest.json" <<-END
		{"schemaVersion":2,"mediaType":"application/vnd.docker.distribution.manifest.v2+json",
		"config":{"mediaType":"application/vnd.docker.container.image.v1+json","size":$(stat -c %s "$dir/$config"),"digest":"sha256:$config"},
		"layers":[{"mediaType":"application/vnd.docker.image.rootfs.diff.tar.gzip","size":$(stat -c %s "$dir/$layer"),"digest":"sha256:$layer"}]}
	END
	printf 'Directory Transport Version: 1.1\n' >"$dir/version"
}

# A cluster of PostgreSQL under home, which belongs to postgres: it does not run as root.
cluster() {
	local port
	port=$(free_port)
	ENVIRONMENT=("PG_CLUSTER_CONF_ROOT=$T/home/etc/postgresql" "PGHOST=$T/home/run" "PGPORT=$port" "PGDATABASE=postgres"
		"PGBACKREST_CONFIG=$T/home/etc/pgbackrest.conf" "PGBACKREST_LOG_PATH=$T/home/log" "PGBACKREST_LOCK_PATH=$T/home/lock"
		"PGBACKREST_SPOOL_PATH=$T/home/spool" "PGBACKREST_PG1_PORT=$port" "PGBACKREST_PG1_SOCKET_PATH=$T/home/run"
		"BETWEEN=$T/home/between")
	mkdir -p "$T"/home/{run,log,lock,spool}
	cp "$T/tls.crt" "$T/home/gantry.pem"
	cat >"$T/home/between" <<-'END'
		#!/bin/sh
		# What is written after the backup comes back out of the archive.
		psql -qAtc "insert into kept select 'after ' || n from generate_series(1, 5000) n" -c 'select pg_switch_wal()'
		psql -qAtc 'select count(*), sum(hashtext(t)) from kept' >kept
	END
	chmod 0755 "$T/home/between"
	chmod 0711 "$T"
	chown -R postgres "$T/home"
	as_postgres pg_createcluster -d "$T/home/data" -l "$T/home/log/postgresql.log" -s "$T/home/run" -p "$port" \
		-o "external_pid_file=$T/home/run/pid" 15 main >"$T/out" 2>&1 || fail "pg_createcluster: $(cat "$T/out")"
	# What archives has the environment that this file gives.
	printf '%s\n' "${ENVIRONMENT[@]}" | sed -n "s/^\(PGBACKREST_[^=]*\)=\(.*\)/\1 = '\2'/p" >>"$T/home/etc/postgresql/15/main/environment"
	# shellcheck disable=SC2154
	trap 'rc=$?; as_postgres pg_ctlcluster -m immediate 15 main stop >/dev/null 2>&1; (exit $rc); _at_exit' EXIT
	as_postgres pg_ctlcluster 15 main start || fail "pg_ctlcluster start"
	sql "create table kept as select 'before ' || n || repeat(md5(n::text), 20) t from generate_series(1, 20000) n"
}
as_postgres() { (cd "$T/home" && env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 runuser -u postgres -- env "${ENVIRONMENT[@]}" "$@"); }
sql() { as_postgres psql -qAtc "$1" || fail "psql: $1"; }

[ "$section" != pgBackRest ] || TLS=1
[ "$section" != 'Was it RDMA?' ] || WITH_NIC=1
clients_daemon
recipe_files
case $section in
Before)
	rm -r "${T:?}/home"
	follow Before
	[ -s "$T/home/big" ] && [ -s "$T/home/tree/below/two" ] || fail "no files"
	;;
'Was it RDMA?')
	ENVIRONMENT=("PATH=$BUILD:/usr/bin:/bin" "BUILD=$BUILD" "SOFTNIC_DIR=$SOFTNIC_DIR")
	FOLLOW=("$ROOT/scripts/with-softnic" -d 1)
	follow "$section" "HOST:9001=$ADMIN"
	same_big
	served from-gantry/big big
	for text in 'big: .* by RDMA in' 'transfer_bytes_total{direction="pull",transport="rdma"} [1-9]' \
		'transfer_bytes_total{direction="push",transport="rdma"} [1-9]' '^rdma  ' '^http  '; do
		grep -q "$text" "$T/followed" || fail "no $text in: $(cat "$T/followed")"
	done
	;;
boto3)
	follow "$section"
	same_big
	served from-boto3/big big
	in_parts from-boto3/big
	refused 'An error occurred (SignatureDoesNotMatch) when calling' "$section"
	;;
'AWS CLI')
	follow "$section"
	same_big
	same_tree
	served from-aws/big big
	in_parts from-aws/big
	refused 'An error occurred (SignatureDoesNotMatch) when calling' "$section"
	;;
rclone)
	follow "$section"
	same_big
	same_tree
	served from-rclone/big big
	in_parts from-rclone/big
	refused 'Attempt 1/3 failed with 1 errors and: SignatureDoesNotMatch' "$section"
	;;
s3cmd)
	follow "$section"
	same_big
	same_tree
	served from-s3cmd/big big
	in_parts from-s3cmd/big
	refused 'S3 error: 403 (SignatureDoesNotMatch)' "$section"
	;;
restic)
	follow "$section"
	same_tree restored/tree
	assert_same "$T/home/big" "$T/home/restored/big"
	grep -q 'no errors were found' "$T/followed" || fail "restic check: $(cat "$T/followed")"
	refused 'Access Denied.' "$section"
	;;
s3fs)
	[ -c /dev/fuse ] || fail "no /dev/fuse: s3fs cannot mount here"
	trap 'rc=$?; ! mountpoint -q "$T/home/mnt" || umount -l "$T/home/mnt"; (exit $rc); _at_exit' EXIT
	follow "$section"
	same_big
	same_tree
	served from-s3fs/big big
	in_parts from-s3fs/big
	;;
docker-registry)
	image
	follow "$section" "localhost:5000=localhost:$(free_port)"
	diff -r "$T/home/image" "$T/home/image.back" || fail "the image came back different"
	;;
pgBackRest)
	cluster
	FOLLOW=(runuser -u postgres --)
	follow "$section" "HOST:9443=localhost:${URL_TLS##*:}" "/etc/ssl/certs/gantry.pem=$T/home/gantry.pem" \
		"/var/lib/postgresql/15/main=$T/home/data"
	assert_eq "$(sql 'select count(*), sum(hashtext(t)) from kept')" "$(cat "$T/home/kept")" "the rows after the restore"
	[ -d "$T/home/data.before" ] || fail "restored over the old directory"
	;;
'AWS SDK for JavaScript' | minio-js)
	# npm's own settings and its cache are the machine's.
	ENVIRONMENT=("npm_config_userconfig=$npmrc" "npm_config_cache=$npm_cache")
	case $section in minio-js) bucket=from-minio-js ;; *) bucket=from-js ;; esac
	follow "$section" "HOST=${S3%:*}" "port: 9000=port: ${S3#*:}"
	same_big
	served $bucket/big big
	in_parts $bucket/big
	refused SignatureDoesNotMatch "$section" "HOST=${S3%:*}" "port: 9000=port: ${S3#*:}"
	;;
*) fail "no test of the recipe '$section'" ;;
esac
assert_alive
