# bash completion for gantry(1); made by scripts/client-words
_gantry() {
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} i word=''
	local commands='put get head cat stat presign cp sync ls du rm mput mget mb rb bench ports status health top trace key bucket disk doctor support hwcheck'
	local options='--no-rdma --require-rdma --scality --checksum --device --transport --dc-key --traffic-class --service-level --path-mtu --pkey-index --config --access-key --secret --region --ca --timeout --jobs --directory --recursive --include --exclude --dry-run --delete --yes --force --size --write --wait --copies --ttl --long --human --depth --range --method --expires --acks --comment --compare --bucket --client --op --errors --slow --prefix --read-only --no-delete --no-overwrite --from --until --max-objects --max-bytes --max-uploads --max-buckets --expire --for --file --conf --sizes --concurrency --mix --way --time --warm-up --rounds --objects --rate --seed --verify --endpoints --csv --hosts --ssh --worker --limit --listen --largest --only --no-times --output --admin --token-file --interval --count --json --verbose --quiet --version --help'
	case $prev in
		--config | --ca | --acks | --compare | --file | --conf | --output | --admin | --token-file) mapfile -t COMPREPLY < <(compgen -f -- "$cur"); return ;;
		-C | --directory) mapfile -t COMPREPLY < <(compgen -d -- "$cur"); return ;;
		--device) mapfile -t COMPREPLY < <(compgen -W "auto $(ls /sys/class/infiniband 2>/dev/null)" -- "$cur"); return ;;
		--transport | --dc-key | --traffic-class | --service-level | --path-mtu | --pkey-index | --access-key | --secret | --region | --timeout | -j | --jobs | --include | --exclude | --size | --copies | --ttl | -d | --depth | --range | --method | --expires | --comment | --bucket | --client | --op | --slow | --prefix | --from | --until | --max-objects | --max-bytes | --max-uploads | --max-buckets | --expire | --for | --sizes | --concurrency | --mix | --way | --time | --warm-up | --rounds | --objects | --rate | --seed | --endpoints | --hosts | --ssh | --limit | --largest | --only | --interval | --count) return ;;
	esac
	for ((i = 1; i < COMP_CWORD; i++)); do
		case ${COMP_WORDS[i]} in
			--device | --transport | --dc-key | --traffic-class | --service-level | --path-mtu | --pkey-index | --config | --access-key | --secret | --region | --ca | --timeout | -j | --jobs | -C | --directory | --include | --exclude | --size | --copies | --ttl | -d | --depth | --range | --method | --expires | --acks | --comment | --compare | --bucket | --client | --op | --slow | --prefix | --from | --until | --max-objects | --max-bytes | --max-uploads | --max-buckets | --expire | --for | --file | --conf | --sizes | --concurrency | --mix | --way | --time | --warm-up | --rounds | --objects | --rate | --seed | --endpoints | --hosts | --ssh | --limit | --largest | --only | --output | --admin | --token-file | --interval | --count) ((i++)) ;;
			-*) ;;
			*) word=${COMP_WORDS[i]}; break ;;
		esac
	done
	case $word in
		put) options='--no-rdma --require-rdma --scality --checksum --device --transport --dc-key --traffic-class --service-level --path-mtu --pkey-index --config --access-key --secret --region --ca --timeout --ttl --json --verbose --quiet --version --help' ;;
		get) options='--no-rdma --require-rdma --scality --checksum --device --transport --dc-key --traffic-class --service-level --path-mtu --pkey-index --config --access-key --secret --region --ca --timeout --jobs --json --verbose --quiet --version --help' ;;
		head) options='--scality --checksum --access-key --secret --region --ca --timeout --json --version --help' ;;
		cat) options='--no-rdma --require-rdma --scality --device --transport --dc-key --traffic-class --service-level --path-mtu --pkey-index --config --access-key --secret --region --ca --timeout --jobs --range --json --verbose --quiet --version --help' ;;
		stat) options='--scality --access-key --secret --region --ca --timeout --json --version --help' ;;
		presign) options='--access-key --secret --region --method --expires --json --version --help' ;;
		cp) options='--no-rdma --require-rdma --scality --checksum --device --transport --dc-key --traffic-class --service-level --path-mtu --pkey-index --config --access-key --secret --region --ca --timeout --jobs --recursive --include --exclude --dry-run --ttl --json --verbose --quiet --version --help' ;;
		sync) options='--no-rdma --require-rdma --scality --checksum --device --transport --dc-key --traffic-class --service-level --path-mtu --pkey-index --config --access-key --secret --region --ca --timeout --jobs --include --exclude --dry-run --delete --yes --ttl --json --verbose --quiet --version --help' ;;
		ls) options='--scality --access-key --secret --region --ca --timeout --recursive --long --human --json --version --help' ;;
		du) options='--scality --access-key --secret --region --ca --timeout --human --depth --json --version --help' ;;
		rm) options='--scality --access-key --secret --region --ca --timeout --jobs --recursive --include --exclude --dry-run --yes --json --quiet --version --help' ;;
		mput) options='--no-rdma --require-rdma --scality --checksum --device --transport --dc-key --traffic-class --service-level --path-mtu --pkey-index --config --access-key --secret --region --ca --timeout --jobs --directory --ttl --acks --json --verbose --quiet --version --help' ;;
		mget) options='--no-rdma --require-rdma --scality --checksum --device --transport --dc-key --traffic-class --service-level --path-mtu --pkey-index --config --access-key --secret --region --ca --timeout --jobs --directory --acks --json --verbose --quiet --version --help' ;;
		mb) options='--scality --access-key --secret --region --ca --timeout --copies --json --version --help' ;;
		rb) options='--scality --access-key --secret --region --ca --timeout --jobs --dry-run --yes --force --json --quiet --version --help' ;;
		bench) options='--no-rdma --require-rdma --scality --checksum --device --transport --dc-key --traffic-class --service-level --path-mtu --pkey-index --config --access-key --secret --region --ca --timeout --compare --sizes --concurrency --mix --way --time --warm-up --rounds --objects --rate --seed --verify --endpoints --csv --hosts --ssh --worker --limit --admin --token-file --count --json --verbose --quiet --version --help' ;;
		ports) options='--no-rdma --require-rdma --device --transport --config --json --version --help' ;;
		status) options='--ca --admin --token-file --json --quiet --version --help' ;;
		health) options='--ca --for --admin --token-file --json --quiet --version --help' ;;
		top) options='--ca --admin --token-file --interval --count --version --help' ;;
		trace) options='--access-key --ca --bucket --client --op --errors --slow --admin --token-file --count --json --version --help' ;;
		key) options='--secret --ca --comment --compare --bucket --prefix --read-only --no-delete --no-overwrite --from --until --max-objects --max-bytes --max-uploads --max-buckets --file --conf --admin --token-file --json --quiet --version --help' ;;
		bucket) options='--ca --max-objects --max-bytes --max-uploads --expire --admin --token-file --json --quiet --version --help' ;;
		disk) options='--ca --force --size --write --wait --conf --admin --token-file --json --quiet --version --help' ;;
		doctor) options='--ca --admin --token-file --json --version --help' ;;
		support) options='--ca --conf --output --admin --token-file --quiet --version --help' ;;
		hwcheck) options='--device --transport --traffic-class --listen --largest --only --no-times --count --json --quiet --version --help' ;;
	esac
	if [[ $cur == -* ]]; then
		mapfile -t COMPREPLY < <(compgen -W "$options" -- "$cur")
		return
	fi
	case $word in
		'') mapfile -t COMPREPLY < <(compgen -W "$commands" -- "$cur") ;;
		put | get | mput | mget) mapfile -t COMPREPLY < <(compgen -f -- "$cur") ;;
	esac
}
complete -o filenames -F _gantry gantry
