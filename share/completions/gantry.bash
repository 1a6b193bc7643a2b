# bash completion for gantry(1)
_gantry() {
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} i word=''
	local commands='put get head rm mput mget mb ports status top doctor'
	local options='--no-rdma --require-rdma --scality --checksum --device --dc-key --config --access-key --secret --region --timeout --jobs --directory
		--acks --admin --interval --count --json --quiet --version --help'
	case $prev in
		--config | --acks | --admin) mapfile -t COMPREPLY < <(compgen -f -- "$cur"); return ;;
		-C | --directory) mapfile -t COMPREPLY < <(compgen -d -- "$cur"); return ;;
		--device) mapfile -t COMPREPLY < <(compgen -W "auto $(ls /sys/class/infiniband 2>/dev/null)" -- "$cur"); return ;;
		--dc-key | --access-key | --secret | --region | --timeout | -j | --jobs | --interval | --count) return ;;
	esac
	if [[ $cur == -* ]]; then
		mapfile -t COMPREPLY < <(compgen -W "$options" -- "$cur")
		return
	fi
	for ((i = 1; i < COMP_CWORD; i++)); do
		case ${COMP_WORDS[i]} in
			--config | --acks | --admin | -C | --directory | --device | --dc-key | --access-key | --secret | --region | --timeout | -j | --jobs | --interval | --count) ((i++)) ;;
			-*) ;;
			*) word=${COMP_WORDS[i]}; break ;;
		esac
	done
	case $word in
		'') mapfile -t COMPREPLY < <(compgen -W "$commands" -- "$cur") ;;
		put | get | mput | mget) mapfile -t COMPREPLY < <(compgen -f -- "$cur") ;;
	esac
}
complete -o filenames -F _gantry gantry
