#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tests/clients/recipes.sh SECTION: follows that section of docs/recipes.md word for word against a daemon of its own, and then looks
# whether what came back, and what the server has by another client's word, is what went in.  What a recipe needs around it is here, by
# its name; one that has nothing here has no test, and fails.
# shellcheck source=tests/clients/clients.sh
. "$(dirname "$0")/clients.sh"
section=${1:?SECTION}
FOLLOW=() ENVIRONMENT=()
case $section in minio-js | *JavaScript) mapfile -t ENVIRONMENT < <(npm_settings) ;; esac

same_big() { assert_same "$T/home/big" "$T/home/big.back"; }
same_tree() { diff -r "$T/home/tree" "$T/home/${1:-tree.back}" || fail "the tree came back different"; }
served() { signed_curl "$1" | cmp - "$T/home/$2" || fail "the server has another $1"; }
in_parts() { # KEY: it was stored as a multipart upload
	case $(signed_curl "$1" --head | grep -i '^etag:') in *-[0-9]*) ;; *) fail "$1 did not go up in parts" ;; esac
}

free_port() { /usr/bin/python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }

# An image of one layer, which is larger than what the registry copies in one piece (32 MiB), in home/image as skopeo's `dir:` has it.
image() {
	local dir=$T/home/image layer config diff
	mkdir -p "$dir" "$T/layer/opt"
	bytes pattern:11 40000000 >"$T/layer/opt/big"
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

# ---- what users do later, by the recipe's own settings ----

# More backups, the old ones forgotten and their data pruned.
restic_goes_on() {
	(
		cd "$T/home" || exit 1
		"$ROOT/scripts/recipe" restic . "HOST:9000=$S3" "ACCESS_KEY=$AWS_ACCESS_KEY_ID" "SECRET_KEY=$AWS_SECRET_ACCESS_KEY"
		. ./restic.env
		bytes pattern:12 30000000 >"more"
		cp -r tree tree2
		set -e
		restic -q backup tree more
		restic -q -o s3.storage-class=STANDARD_IA -o s3.list-objects-v1=true backup tree2
		restic -q forget --keep-last 1 --group-by '' --prune --max-unused 0
		restic -q check --read-data
		restic -q restore latest --target later
		diff -r tree2 later/tree2
		[ "$(restic -q snapshots --json | tr -cd '{' | wc -c)" = 1 ]
		[ -z "$(restic -q list locks)" ]
	) >"$T/out" 2>&1 || fail "restic: more backups, and pruned: $(tail -n 20 "$T/out")"
}

# Files that change under the mount, and a directory beside it where the same is done.
s3fs_goes_on() {
	local d mount
	mount=$(sed -n '/^s3fs /{N;p;q}' "$T/home/recipe.sh")
	mkdir "$T/home/twin"
	(cd "$T/home" && HOME=$T/home eval "$mount" && cp -r big tree twin) || fail "s3fs: the second mount"
	for d in mnt twin; do
		(
			set -e
			cd "$T/home/$d"
			echo more >>big
			dd if=../tree/plain.txt of=big bs=100 seek=77777 conv=notrunc status=none
			mv big large
			truncate -s 12345678 large
			truncate -s 13000000 large
			mkdir -p dir/below
			mv large dir/
			cp dir/large .
			ln -s dir/large link
			chmod 600 large
			mv tree moved
			rm -r 'moved/sub dir' moved/plain.txt
			rmdir dir/below
			for i in $(seq 25); do echo "$i" >many"$i"; done
			rm many1*
		) || fail "s3fs: changes in $d"
	done
	umount "$T/home/mnt"
	(cd "$T/home" && HOME=$T/home eval "$mount") || fail "s3fs: the third mount"
	diff -r --no-dereference "$T/home/mnt" "$T/home/twin" || fail "s3fs: what was changed came back different"
	assert_eq "$(stat -c %a "$T/home/mnt/large")" 600 "mode"
	umount "$T/home/mnt"
}

# The image is deleted, and its blobs collected.
registry_goes_on() {
	local pid blobs="/usr/bin/aws --endpoint-url $URL_S3 s3 ls --recursive s3://from-registry/docker/registry/v2/blobs/"
	assert_eq "$($blobs | grep -c /data)" 3 "blobs of the image"
	(cd "$T/home" && exec /usr/bin/docker-registry serve registry.yml >"$T/registry.log" 2>&1) &
	pid=$!
	curl -sS --fail --retry 30 --retry-connrefused "http://$registry/v2/" >"$T/out" 2>&1 || fail "the registry: $(cat "$T/registry.log")"
	/usr/bin/skopeo delete --tls-verify=false "docker://$registry/team/image:1" || fail "skopeo delete"
	kill $pid
	wait $pid
	/usr/bin/docker-registry garbage-collect "$T/home/registry.yml" >"$T/out" 2>&1 || fail "garbage-collect: $(tail "$T/out")"
	assert_eq "$($blobs | grep -c /data)" 0 "blobs after the collection: $(tail "$T/out")"
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

# MariaDB's server around a command: with the settings of the page, as the user mysql, its data in $DATA.
mariadb_server() {
	mkdir -p "$T/sql"
	cat >"$T/my.cnf" <<-END
		!include $T/home/etc/mysql/mariadb.conf.d/s3.cnf
		[mariadbd]
		user = mysql
		socket = $T/sql/socket
		pid-file = $T/sql/pid
		log-error = $T/sql/log
		skip-networking
		skip-grant-tables
		skip-innodb
		default-storage-engine = Aria
	END
	cat >"$T/with-mariadb" <<-'END'
		#!/bin/bash
		# Runs a command while the server is there; in $DATA, which is made if it is not there.
		[ -d "$DATA" ] || mariadb-install-db --no-defaults --datadir="$DATA" --user=mysql --skip-test-db --auth-root-authentication-method=normal >&2
		mariadbd --defaults-file="$SETTINGS" --datadir="$DATA" &
		server=$!
		until mariadb -e 'select 1' >/dev/null 2>&1; do
			[ -d /proc/$server ] && [ $SECONDS -lt 100 ] || break
			sleep 0.2
		done
		"$@"
		rc=$?
		kill $server
		wait $server
		exit $rc
	END
	chmod 0755 "$T/with-mariadb"
	chmod 0711 "$T"
	chown mysql "$T/sql"
	printf '[client]\nsocket = %s\n' "$T/sql/socket" >"$T/home/.my.cnf"
	ENVIRONMENT=("SETTINGS=$T/my.cnf" "DATA=$T/sql/data" "HOME=$T/home")
	FOLLOW=("$T/with-mariadb")
}
# Another server finds the table in the bucket, and does with it what ALTER TABLE can.
mariadb_goes_on() {
	local want said
	want=$(grep -o '| *50000 | *[0-9]* |' "$T/followed" | tr -d '| ' | tail -n 1)
	[ -n "$want" ] || fail "no sum in $(tail -n 30 "$T/followed")"
	said=$(env "${ENVIRONMENT[@]}" "DATA=$T/sql/other" "$T/with-mariadb" mariadb -N 2>"$T/out" <<-'END'
		create database archive;
		use archive;
		select count(*), sum(crc32(text)) from log;
		alter table log add column more int not null default 7, COMPRESSION_ALGORITHM=zlib;
		select count(*), sum(crc32(text)) + sum(more) - 350000 from log;
		rename table log to old;
		select count(*), sum(crc32(text)) from old where id > 0;
		select count(*), text = repeat(md5(40000), 9) from old where id = 40000;
		alter table old engine=Aria;
		insert into old values (0, 'more', 1);
		select count(*) - 1, sum(crc32(text)) - crc32('more') from old;
	END
	) || fail "another server: $(tail -n 30 "$T/out")"
	assert_eq "$(tr -d '\t' <<<"$said")" "$want"$'\n'"$want"$'\n'"$want"$'\n'11$'\n'"$want" "the sums of the table"
	signed_curl 'from-mariadb?list-type=2' >"$T/out" || fail "a list of the bucket"
	assert_eq "$(grep -o '<Key>[^<]*' "$T/out")" "" "objects of a table that went back"
}

[ "$section" != pgBackRest ] || TLS=1
[ "$section" != 'Was it RDMA?' ] || WITH_NIC=1
# A key for these buckets alone is enough.
GRANTS='[{ bucket: "from-*" }]'
clients_daemon
recipe_files
case $section in
Before)
	rm -r "${T:?}/home"
	follow Before
	[ -s "$T/home/big" ] && [ -s "$T/home/tree/below/two" ] || fail "no files"
	;;
'Was it RDMA?')
	ENVIRONMENT=("BUILD=$BUILD" "SOFTNIC_DIR=$SOFTNIC_DIR")
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
	restic_goes_on
	;;
s3fs)
	[ -c /dev/fuse ] || fail "no /dev/fuse: s3fs cannot mount here"
	trap 'rc=$?; ! mountpoint -q "$T/home/mnt" || umount -l "$T/home/mnt"; (exit $rc); _at_exit' EXIT
	follow "$section"
	same_big
	same_tree
	served from-s3fs/big big
	in_parts from-s3fs/big
	s3fs_goes_on
	;;
docker-registry)
	image
	registry=localhost:$(free_port)
	follow "$section" "localhost:5000=$registry"
	diff -r "$T/home/image" "$T/home/image.back" || fail "the image came back different"
	registry_goes_on
	;;
pgBackRest)
	cluster
	FOLLOW=(runuser -u postgres --)
	follow "$section" "HOST:9443=localhost:${URL_TLS##*:}" "/etc/ssl/certs/gantry.pem=$T/home/gantry.pem" \
		"/var/lib/postgresql/15/main=$T/home/data"
	assert_eq "$(sql 'select count(*), sum(hashtext(t)) from kept')" "$(cat "$T/home/kept")" "the rows after the restore"
	[ -d "$T/home/data.before" ] || fail "restored over the old directory"
	;;
MariaDB)
	mariadb_server
	words=("HOST=${S3%:*}" "9000=${S3#*:}")
	follow "$section" "${words[@]}"
	mariadb_goes_on
	refused SignatureDoesNotMatch "$section" "${words[@]}"
	;;
'AWS SDK for JavaScript' | minio-js)
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
