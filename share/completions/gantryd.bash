# bash completion for gantryd(8)
_gantryd() {
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}
	case $prev in
		-c | --config | --ready-file) mapfile -t COMPREPLY < <(compgen -f -- "$cur"); return ;;
		-o)
			# The keys, from the program itself; those of lists cannot be set this way.
			mapfile -t COMPREPLY < <(compgen -S = -W "$(gantryd --print-keys 2>/dev/null | cut -f1 | grep -vF '[]')" -- "$cur")
			compopt -o nospace
			return
			;;
	esac
	mapfile -t COMPREPLY < <(compgen -W '--config -o --ready-file --check-config --print-config --list-devices --format
		--force --if-absent --replace-store --fsck --repair --yes --upgrade --forget --add --reload --print-keys --print-metrics --version --help' -- "$cur")
}
complete -o filenames -F _gantryd gantryd
