#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# scripts/recipe takes out of a page what is marked in the section that is asked for, puts values where placeholders stand alone, and
# says what it cannot do.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
recipe() { "$ROOT/scripts/recipe" -p "$T/page" "$@"; }
cat >"$T/page" <<'END'
# A page

```sh run
echo outside of any section
```

## first

```ini file=~/.config/it's
endpoint = http://HOST:9000/HOST
AWS_ACCESS_KEY_ID=ACCESS_KEY, ACCESS_KEY_2, "ACCESS_KEY"; back\slash & $HOME
```

```sh
echo not marked
```

```sh run
echo one HOST
## no heading
```

```sh run
echo two
```

```text file=/etc/HOST/plain
## neither
last
```

## second

```text file=here
```

## third

```sh run
echo three
```
END
assert_eq "$(recipe --list | tr '\n' ',')" ",first,third," "what can be run"
sed -i '/outside/d' "$T/page"
recipe first "$T/out" HOST=short 'HOST:9000=a host:1' 'ACCESS_KEY=k&\1' || fail "first"
assert_eq "$(cd "$T/out" && find . -type f | sort | tr '\n' ' ')" "./.config/it's ./etc/short/plain ./recipe.sh " "its files"
cat >"$T/want" <<'END'
endpoint = http://a host:1/short
AWS_ACCESS_KEY_ID=k&\1, ACCESS_KEY_2, "k&\1"; back\slash & $HOME
END
assert_same "$T/want" "$T/out/.config/it's"
printf '## neither\nlast\n' >"$T/want"
assert_same "$T/want" "$T/out/etc/short/plain"
assert_eq "$(sh "$T/out/recipe.sh")" $'one short\ntwo' "its commands"
assert_eq "$(BETWEEN='echo after' sh "$T/out/recipe.sh")" $'one short\nafter 1\ntwo' "between its blocks"

says() { # TEXT WORDS...
	recipe "${@:2}" >"$T/out.txt" 2>&1
	assert_eq $? 2 "recipe ${*:2}"
	grep -qF "$1" "$T/out.txt" || fail "recipe ${*:2} said: $(<"$T/out.txt")"
}
says 'no such section: fourth' fourth "$T/no"
says 'nothing to run in: second' second "$T/no"
says 'not of the form WORD=VALUE: HOST' first "$T/no" HOST
says 'SECTION and DIR are missing' first
"$ROOT/scripts/recipe" --help | grep -q 'SECTION DIR' || fail "--help"
[ -n "$("$ROOT/scripts/recipe" --list)" ] || fail "docs/recipes.md has nothing to run"
