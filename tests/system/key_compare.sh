#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# gantry key list --compare: where the files of keys of several gateways differ, asked by ssh; what is the same is said too, a host that
# does not answer, and one that answers something else; and no secret crosses (claim TM98).
. "$(dirname "$0")/lib.sh"
NO_NIC=1
cd "$T" || exit 1
unset GANTRY_ADMIN
# Stands in the place of ssh(1): each host is a file of keys, and gantry runs for it as on that host. What crosses is kept.
cat >ssh <<-END
	#!/bin/bash
	while [ "\$1" = -o ]; do shift 2; done
	[ "\$2" = "gantry key list --json --quiet" ] && [ \$# = 2 ] || { echo "ssh was given: \$*" >&2; exit 9; }
	case \$1 in
	*@away) echo "ssh: connect to host away port 22: No route to host" >&2; exit 255 ;;
	old) echo '{"access_key":"AKONE","grants":[]}' ;;
	silent) exit 3 ;;
	*) "$BUILD/gantry" key list --json --quiet --admin "$T/none.sock" --file "$T/\$1.yaml" | tee -a "$T/crossed"; exit "\${PIPESTATUS[0]}" ;;
	esac
END
chmod +x ssh
export GANTRY_SSH=$T/ssh
# says RC WORDS...: standard output goes to out, errors to err
says() {
	local rc=$1 have
	shift
	gantry key list --file here.yaml "$@" >out 2>err
	have=$?
	[ $have = "$rc" ] || fail "gantry key list $*: exit $have, want $rc: $(cat out err)"
}
id() { printf '%s\0' "gantry secret id 1" "$1" | cat - <(printf %s "$2") | sha256sum | cut -c1-8; }
ONE=$(id AKONE one-secret-1) TWO=$(id AKTWO two-secret-1) NEW=$(id AKTWO two-secret-2)

cat >here.yaml <<-END
	- { access_key: AKONE, secret_key: one-secret-1, grants: [{ bucket: b, max_objects: 5 }], from: [10.0.0.0/8] }
	- { access_key: AKTWO, secret_key: two-secret-1, comment: here, expires: 2099-01-01T00:00:00Z }
	- { access_key: AKOLD, secret_key: old-secret-1, expires: 2020-01-01T00:00:00Z }
END
# The same in other words: another order, another way to write it, another comment, and nothing of what has expired.
cat >same.yaml <<-END
	- access_key: AKTWO
	  made: 2026-01-01T00:00:00Z
	  expires: 2099-01-01T01:00:00+01:00
	  secret_key: two-secret-1
	- { access_key: AKONE, from: ["10.0.0.0/8"], secret_key: one-secret-1, grants: [{ max_objects: 5, bucket: b }] }
END
cp here.yaml same2.yaml
chmod 600 ./*.yaml
says 0 --compare same,same2
assert_eq "$(<out)" "same has the same keys (2 secrets)
same2 has the same keys (2 secrets)"
[ ! -s err ] || fail "$(<err)"
says 0 --compare same --json
[ ! -s out ] || fail "no difference has lines: $(<out)"

# Each kind of difference, by name and by both values.
sed 's/max_objects: 5/max_objects: 6/; s/10.0.0.0/10.1.0.0\/16, 10.0.0.0/; s/2099/2098/' here.yaml >rights.yaml
sed 's/two-secret-1/two-secret-2/' here.yaml >secret.yaml
grep -v AKONE here.yaml >less.yaml
printf -- '- { access_key: AKMORE, secret_key: more-secret-1, read_only: true }\n' | cat here.yaml - >more.yaml
printf -- '- { access_key: AKTWO, secret_key: two-secret-2 }\n' | cat here.yaml - >turned.yaml
chmod 600 ./*.yaml
says 1 --compare rights,secret,same,less,more,turned
cat >want <<-END
	AKONE                 $ONE  grants: G here, G on rights
	AKONE                 $ONE  from: ["10.0.0.0/8"] here, ["10.1.0.0/16","10.0.0.0/8"] on rights
	AKTWO                 $TWO  until: "2099-01-01T00:00:00Z" here, "2098-01-01T00:00:00Z" on rights
	AKTWO                 $TWO  the key has another secret on secret
	AKTWO                 $NEW  the secret is only on secret
	same has the same keys (2 secrets)
	AKONE                 $ONE  the key is not on less
	AKMORE                $(id AKMORE more-secret-1)  the key is only on more
	AKTWO                 $NEW  the secret is only on turned
END
grep -q 'grants: .*"max_objects":5.* here, .*"max_objects":6.* on rights' out || fail "the grants: $(<out)"
sed 's/\[{[^]]*}\]/G/g' out | diff want - || fail "the differences: $(<out)"
says 1 --compare rights,less --json
assert_eq "$(/usr/bin/python3 -c 'import json; print([(o["host"], o["access_key"], o["secret_id"], o["differs"], o.get("there")) for o in map(json.loads, open("out"))][2:])')" \
	"[('rights', 'AKTWO', '$TWO', 'until', '2098-01-01T00:00:00Z'), ('less', 'AKONE', '$ONE', 'the key is not on', None)]"

# A host that is away, one of before, one that says nothing, one without a file, a program that is not there: named, and the others are compared.
says 1 --compare root@away,same
grep -qxF 'gantry: root@away: no list from there: ssh: connect to host away port 22: No route to host' err || fail "$(<err)"
assert_eq "$(<out)" "same has the same keys (2 secrets)"
says 1 --compare root@away --json
grep -qF '{"host":"root@away","error":"no list from there: ssh: connect' out || fail "$(<out)"
says 1 --compare old
grep -qF 'gantry: old: its gantry does not show ids of secrets' err || fail "$(<err)"
says 1 --compare silent
grep -qF 'gantry: silent: no list from there: gantry key list fails' err || fail "$(<err)"
says 1 --compare nofile
grep -qF "nofile.yaml: No such file or directory; gantry: \`gantry key new\` makes it" err || fail "$(<err)"
GANTRY_SSH=$T/no-ssh says 1 --compare same
grep -qF 'gantry: same: ssh cannot be started: No such file or directory' err || fail "$(<err)"
says 2 --compare -oProxyCommand=touch
grep -qF -- '--compare wants names of hosts' err || fail "$(<err)"
says 2 --compare same,-x
says 2 --compare ,
gantry key revoke AKONE --file here.yaml --compare same >out 2>err
assert_eq $? 2
grep -qF -- '--compare is for list' err || fail "$(<err)"

[ "$(wc -l <crossed)" -gt 10 ] || fail "what crossed was not kept"
! grep -E -- '-secret-[0-9]|secret_key' crossed out err || fail "a secret has crossed"
