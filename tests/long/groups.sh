# SPDX-License-Identifier: Apache-2.0
# What power cuts are checked by: groups g0, g1 and g2 of keys, each put, overwritten or deleted as a whole in a round by a flood that
# writes what was acknowledged to $T/ack.GROUP; sourced after disk.sh.
#
# seed[g] and size[g] are what the round puts (seed "gone": deletes), state[g-i] what was read back of a key the last time.
declare -A state=() md5_of=()
acked=0 checked=0 unacked_kept=0

# What pattern $1 of $2 bytes sums to.
sum_of() {
	local k=$1:$2
	[ -n "${md5_of[$k]:-}" ] || md5_of[$k]=$(bytes "pattern:$1" "$2" | md5)
	sum=${md5_of[$k]}
}

flood() { nic "$BUILD/tools/rawclient" -s "$S3" >"$T/$1.out" 2>&1; }

# Reads the $1 keys of each group back; every one that is neither what it has to be nor what it may be is given to
# wrong KEY IS MUST-BE WAS IS-ACKNOWLEDGED, with the group in $g.
check_groups() {
	local i code have was now is_ack
	for g in 0 1 2; do
		declare -A is_acked=() sums=()
		touch "$T/ack.$g"
		while read -r i code _; do
			case $code in 200 | 204) is_acked[$i]=1 acked=$((acked + 1)) ;; esac
		done <"$T/ack.$g"
		rm -rf "$T/got"
		mkdir "$T/got"
		curl -sS --max-time 120 -o "$T/got/#1" -w '%{http_code} %{url_effective}\n' "$URL_S3/bkt/g$g-[0-$(($1 - 1))]" >"$T/codes" ||
			fail "round $r: reading g$g back: $(tail -n 3 "$T/codes")"
		while read -r sum i; do sums[${i##*/}]=$sum; done < <(md5sum "$T"/got/*)
		while read -r code i; do
			i=${i##*-}
			case $code in 200) have=${sums[$i]} ;; 404) have=gone ;; *) have="answer $code" ;; esac
			was=${state[$g-$i]:-gone} now=gone is_ack=${is_acked[$i]:-0}
			[ "${seed[g]}" = gone ] || { sum_of "${seed[g]}" "${size[g]}"; now=$sum; }
			if [ "$have" != "$now" ]; then
				[ $is_ack = 0 ] && [ "$have" = "$was" ] || wrong "g$g-$i" "$have" "$now" "$was" $is_ack
			elif [ $is_ack = 0 ] && [ "$have" != "$was" ]; then
				unacked_kept=$((unacked_kept + 1))
			fi
			state[$g-$i]=$have checked=$((checked + 1))
		done <"$T/codes"
		unset is_acked sums
	done
}
