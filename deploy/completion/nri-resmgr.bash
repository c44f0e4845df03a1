# Completion of nri-resmgr for bash, written by: nri-resmgr completion bash

_nri_resmgr_files() {
    compopt -o filenames 2>/dev/null
    mapfile -t COMPREPLY < <(compgen -f -- "$1")
}

_nri_resmgr_words() {
    mapfile -t COMPREPLY < <(compgen -W "$2" -- "$1")
}

_nri_resmgr() {
    local current="${COMP_WORDS[COMP_CWORD]}" previous="" path="" word="" i
    COMPREPLY=()
    (( COMP_CWORD > 0 )) && previous="${COMP_WORDS[COMP_CWORD - 1]}"
    if [[ $current == "=" ]]; then
        current=""
    elif [[ $previous == "=" ]]; then
        previous="${COMP_WORDS[COMP_CWORD - 2]}"
    fi
    for (( i = 1; i < COMP_CWORD; i++ )); do
        word="${path:+$path }${COMP_WORDS[i]}"
        case "$word" in
            run|agent|webhook|webhook-certificates|demo|status|explain|events|top|log|reload|rebalance|topology|'topology dump'|'topology sysfs'|check|schema|convert|simulate|replay|try|inspect|plugin|new-plugin|completion|install|uninstall|enable-runtime) path="$word" ;;
        esac
    done
    case "$path" in
        '')
            if [[ $current == -* ]]; then _nri_resmgr_words "$current" "-h --help --version"
            else _nri_resmgr_words "$current" "run agent webhook webhook-certificates demo status explain events top log reload rebalance topology check schema convert simulate replay try inspect plugin new-plugin completion install uninstall enable-runtime"
            fi ;;
        run)
            case "$previous" in
                --nri-socket) _nri_resmgr_files "$current"; return ;;
                --nri-plugin-name) return ;;
                --nri-plugin-index) return ;;
                --unsolicited-updates) _nri_resmgr_words "$current" "auto always never"; return ;;
                --apply-updates) _nri_resmgr_words "$current" "auto cgroup runtime"; return ;;
                --vm-handlers) return ;;
                --config-file|--force-config) _nri_resmgr_files "$current"; return ;;
                --fallback-config) _nri_resmgr_files "$current"; return ;;
                --spool) _nri_resmgr_files "$current"; return ;;
                --kubelet-dir) _nri_resmgr_files "$current"; return ;;
                --cdi-dir) _nri_resmgr_files "$current"; return ;;
                --cpu-drivers) return ;;
                --host-root) _nri_resmgr_files "$current"; return ;;
                --memory-kinds) return ;;
                --state-dir) _nri_resmgr_files "$current"; return ;;
                --run-dir) _nri_resmgr_files "$current"; return ;;
                --mpolset) _nri_resmgr_files "$current"; return ;;
                --resource-path) _nri_resmgr_files "$current"; return ;;
                --verify-interval) return ;;
                --verify-repair) _nri_resmgr_words "$current" "yes no"; return ;;
                --record) _nri_resmgr_files "$current"; return ;;
                --record-limit) return ;;
                --control-socket) _nri_resmgr_files "$current"; return ;;
                --http-endpoint) return ;;
                --health-endpoint) return ;;
                --otel-endpoint) return ;;
                --otel-sampling) return ;;
                --log-level) _nri_resmgr_words "$current" "debug info warning error"; return ;;
                --log-format) _nri_resmgr_words "$current" "text json"; return ;;
                --log-debug) return ;;
                --log-to) return ;;
            esac
            if [[ $current == -* ]]; then _nri_resmgr_words "$current" "-h --help --nri-socket --wait-for-runtime --nri-plugin-name --nri-plugin-index --unsolicited-updates --apply-updates --vm-handlers --config-file --force-config --fallback-config --spool --kubelet-dir --cdi-dir --cpu-drivers --disable-policy-switch --reset-config --host-root --memory-kinds --state-dir --reset-policy --run-dir --mpolset --resource-path --dry-run --verify-interval --verify-repair --record --record-limit --record-env --control-socket --http-endpoint --health-endpoint --http-page --metrics-per-container --otel-endpoint --otel-sampling --log-level --log-format --log-debug --log-to"
            fi ;;
        agent)
            case "$previous" in
                --kubeconfig) _nri_resmgr_files "$current"; return ;;
                --api-server) return ;;
                --node-name) return ;;
                --config-namespace) return ;;
                --source) _nri_resmgr_words "$current" "custom-resources config-maps"; return ;;
                --kinds) return ;;
                --spool) _nri_resmgr_files "$current"; return ;;
                --startup-taint) return ;;
                --control-socket) _nri_resmgr_files "$current"; return ;;
                --http-endpoint) return ;;
                --health-endpoint) return ;;
                --log-level) _nri_resmgr_words "$current" "debug info warning error"; return ;;
                --log-format) _nri_resmgr_words "$current" "text json"; return ;;
                --log-debug) return ;;
                --log-to) return ;;
            esac
            if [[ $current == -* ]]; then _nri_resmgr_words "$current" "-h --help --kubeconfig --api-server --node-name --config-namespace --source --kinds --config-fall-through --spool --startup-taint --control-socket --http-endpoint --health-endpoint --log-level --log-format --log-debug --log-to"
            fi ;;
        webhook)
            case "$previous" in
                --endpoint) return ;;
                --tls-cert) _nri_resmgr_files "$current"; return ;;
                --tls-key) _nri_resmgr_files "$current"; return ;;
                --annotation) _nri_resmgr_words "$current" "nri-plugins cri-resource-manager"; return ;;
                --validate-with) _nri_resmgr_files "$current"; return ;;
                --linger) return ;;
                --http-endpoint) return ;;
                --health-endpoint) return ;;
                --log-level) _nri_resmgr_words "$current" "debug info warning error"; return ;;
                --log-format) _nri_resmgr_words "$current" "text json"; return ;;
                --log-debug) return ;;
                --log-to) return ;;
            esac
            if [[ $current == -* ]]; then _nri_resmgr_words "$current" "-h --help --endpoint --tls-cert --tls-key --annotation --validate-with --linger --http-endpoint --health-endpoint --log-level --log-format --log-debug --log-to"
            fi ;;
        webhook-certificates)
            case "$previous" in
                --kubeconfig) _nri_resmgr_files "$current"; return ;;
                --namespace) return ;;
                --service) return ;;
                --secret) return ;;
                --mutating) return ;;
                --validating) return ;;
                --folder) _nri_resmgr_files "$current"; return ;;
                --days) return ;;
                --health-endpoint) return ;;
                --log-level) _nri_resmgr_words "$current" "debug info warning error"; return ;;
                --log-format) _nri_resmgr_words "$current" "text json"; return ;;
                --log-debug) return ;;
                --log-to) return ;;
            esac
            if [[ $current == -* ]]; then _nri_resmgr_words "$current" "-h --help --kubeconfig --namespace --service --secret --mutating --validating --folder --days --health-endpoint --log-level --log-format --log-debug --log-to"
            fi ;;
        demo)
            case "$previous" in
                --machine) return ;;
                --unless-socket) _nri_resmgr_files "$current"; return ;;
            esac
            if [[ $current == -* ]]; then _nri_resmgr_words "$current" "-h --help --machine --stay --unless-socket"
            fi ;;
        status)
            case "$previous" in
                -n|--namespace) return ;;
                --picture) _nri_resmgr_files "$current"; return ;;
                --control-socket) _nri_resmgr_files "$current"; return ;;
                -o|--output) _nri_resmgr_words "$current" "table wide json yaml"; return ;;
            esac
            if [[ $current == -* ]]; then _nri_resmgr_words "$current" "-h --help -n --namespace --picture --control-socket -o --output"
            fi ;;
        explain)
            case "$previous" in
                --picture) _nri_resmgr_files "$current"; return ;;
                --control-socket) _nri_resmgr_files "$current"; return ;;
                -o|--output) _nri_resmgr_words "$current" "table json yaml"; return ;;
            esac
            if [[ $current == -* ]]; then _nri_resmgr_words "$current" "-h --help --picture --control-socket -o --output"
            fi ;;
        events)
            case "$previous" in
                --since) return ;;
                --control-socket) _nri_resmgr_files "$current"; return ;;
                -o|--output) _nri_resmgr_words "$current" "table wide json yaml"; return ;;
            esac
            if [[ $current == -* ]]; then _nri_resmgr_words "$current" "-h --help -f --follow --since --control-socket -o --output"
            fi ;;
        top)
            case "$previous" in
                --interval) return ;;
                --control-socket) _nri_resmgr_files "$current"; return ;;
                -o|--output) _nri_resmgr_words "$current" "table json yaml"; return ;;
            esac
            if [[ $current == -* ]]; then _nri_resmgr_words "$current" "-h --help --once --interval --control-socket -o --output"
            fi ;;
        log)
            case "$previous" in
                --control-socket) _nri_resmgr_files "$current"; return ;;
                -o|--output) _nri_resmgr_words "$current" "table json yaml"; return ;;
            esac
            if [[ $current == -* ]]; then _nri_resmgr_words "$current" "-h --help --control-socket -o --output"
            fi ;;
        reload)
            case "$previous" in
                --control-socket) _nri_resmgr_files "$current"; return ;;
            esac
            if [[ $current == -* ]]; then _nri_resmgr_words "$current" "-h --help --force --control-socket"
            fi ;;
        rebalance)
            case "$previous" in
                --at-most) return ;;
                --control-socket) _nri_resmgr_files "$current"; return ;;
                -o|--output) _nri_resmgr_words "$current" "table json yaml"; return ;;
            esac
            if [[ $current == -* ]]; then _nri_resmgr_words "$current" "-h --help --at-most --dry-run --control-socket -o --output"
            fi ;;
        topology)
            case "$previous" in
                --host-root) _nri_resmgr_files "$current"; return ;;
                --memory-kinds) return ;;
                --machine) return ;;
                --load) _nri_resmgr_files "$current"; return ;;
                --picture) _nri_resmgr_files "$current"; return ;;
                -o|--output) _nri_resmgr_words "$current" "table json yaml"; return ;;
            esac
            if [[ $current == -* ]]; then _nri_resmgr_words "$current" "-h --help --host-root --memory-kinds --machine --load --picture -o --output"
            else _nri_resmgr_words "$current" "dump sysfs"
            fi ;;
        'topology dump')
            if [[ $current == -* ]]; then _nri_resmgr_words "$current" "-h --help"
            else _nri_resmgr_files "$current"
            fi ;;
        'topology sysfs')
            if [[ $current == -* ]]; then _nri_resmgr_words "$current" "-h --help"
            else _nri_resmgr_files "$current"
            fi ;;
        check)
            case "$previous" in
                --topology) _nri_resmgr_files "$current"; return ;;
                --host-root) _nri_resmgr_files "$current"; return ;;
                --memory-kinds) return ;;
                --kubelet-dir) _nri_resmgr_files "$current"; return ;;
                -o|--output) _nri_resmgr_words "$current" "table json yaml"; return ;;
            esac
            if [[ $current == -* ]]; then _nri_resmgr_words "$current" "-h --help --topology --host-root --memory-kinds --kubelet-dir -o --output"
            else _nri_resmgr_files "$current"
            fi ;;
        schema)
            if [[ $current == -* ]]; then _nri_resmgr_words "$current" "-h --help --crd"
            fi ;;
        convert)
            if [[ $current == -* ]]; then _nri_resmgr_words "$current" "-h --help"
            else _nri_resmgr_files "$current"
            fi ;;
        simulate)
            case "$previous" in
                --cluster) _nri_resmgr_files "$current"; return ;;
                --topology) _nri_resmgr_files "$current"; return ;;
                --host-root) _nri_resmgr_files "$current"; return ;;
                --memory-kinds) return ;;
                --config-file) _nri_resmgr_files "$current"; return ;;
                --against) _nri_resmgr_files "$current"; return ;;
                --picture) _nri_resmgr_files "$current"; return ;;
                -o|--output) _nri_resmgr_words "$current" "table wide json yaml"; return ;;
            esac
            if [[ $current == -* ]]; then _nri_resmgr_words "$current" "-h --help --cluster --topology --host-root --memory-kinds --config-file --against --picture --fail-on-refused -o --output"
            else _nri_resmgr_files "$current"
            fi ;;
        replay)
            case "$previous" in
                --config-file) _nri_resmgr_files "$current"; return ;;
                --topology) _nri_resmgr_files "$current"; return ;;
                --timeline) _nri_resmgr_files "$current"; return ;;
                -o|--output) _nri_resmgr_words "$current" "table json yaml"; return ;;
            esac
            if [[ $current == -* ]]; then _nri_resmgr_words "$current" "-h --help --config-file --topology --show --timeline -o --output"
            else _nri_resmgr_files "$current"
            fi ;;
        try)
            case "$previous" in
                --config) _nri_resmgr_files "$current"; return ;;
                --level) return ;;
                --wait) return ;;
                --log-level) _nri_resmgr_words "$current" "debug info warning error"; return ;;
                -o|--output) _nri_resmgr_words "$current" "table json yaml"; return ;;
            esac
            if [[ $current == -* ]]; then _nri_resmgr_words "$current" "-h --help --config --level --stop --wait --log-level -o --output"
            else _nri_resmgr_files "$current"
            fi ;;
        inspect)
            case "$previous" in
                --nri-socket) _nri_resmgr_files "$current"; return ;;
                -o|--output) _nri_resmgr_words "$current" "table json yaml"; return ;;
            esac
            if [[ $current == -* ]]; then _nri_resmgr_words "$current" "-h --help --nri-socket --changed --owners -o --output"
            fi ;;
        plugin)
            if [[ $current == -* ]]; then _nri_resmgr_words "$current" "-h --help"
            fi ;;
        new-plugin)
            case "$previous" in
                --index) return ;;
                --folder) _nri_resmgr_files "$current"; return ;;
            esac
            if [[ $current == -* ]]; then _nri_resmgr_words "$current" "-h --help --index --folder"
            fi ;;
        completion)
            if [[ $current == -* ]]; then _nri_resmgr_words "$current" "-h --help"
            else _nri_resmgr_words "$current" "bash zsh"
            fi ;;
        install)
            case "$previous" in
                --name) return ;;
                --index) return ;;
                --config) _nri_resmgr_files "$current"; return ;;
                --plugin-dir) _nri_resmgr_files "$current"; return ;;
                --config-dir) _nri_resmgr_files "$current"; return ;;
            esac
            if [[ $current == -* ]]; then _nri_resmgr_words "$current" "-h --help --name --index --config --plugin-dir --config-dir"
            fi ;;
        uninstall)
            case "$previous" in
                --plugin-dir) _nri_resmgr_files "$current"; return ;;
                --config-dir) _nri_resmgr_files "$current"; return ;;
            esac
            if [[ $current == -* ]]; then _nri_resmgr_words "$current" "-h --help --purge --plugin-dir --config-dir"
            fi ;;
        enable-runtime)
            case "$previous" in
                --registration-timeout) return ;;
                --request-timeout) return ;;
                --require-plugin) return ;;
                --tolerate-annotation) return ;;
                --host-root) _nri_resmgr_files "$current"; return ;;
                -o|--output) _nri_resmgr_words "$current" "table json yaml"; return ;;
            esac
            if [[ $current == -* ]]; then _nri_resmgr_words "$current" "-h --help --containerd --crio --registration-timeout --request-timeout --default-validator --require-plugin --tolerate-annotation --dry-run --restart --undo --host-root -o --output"
            fi ;;
    esac
}

complete -F _nri_resmgr nri-resmgr
