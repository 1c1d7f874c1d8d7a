# An upgrade to the build of the next protocol version, and the way back. Sourced by check.sh, which has `check`, `v` and `started`; the
# service is stopped before and after.
# shellcheck shell=bash disable=SC2154
unit="upgrade" as=() socket=/run/vm-system/control.sock manage=(systemctl)
next=/usr/local/lib/vm-system-next
before=/usr/local/lib/vm-system-before

# As a package manager does: the file is replaced, and processes keep the old one.
replace() {
    install -m 0755 "$1" /usr/bin/vm-system.new && mv -f /usr/bin/vm-system.new /usr/bin/vm-system
}
session() {
    v session create --template-id "$1" --workspace-id w --base-commit c --worktree-path /srv/work/service --name "$2"
}
# The builds that `ops upgrade` shows, as PROTOCOL:CURRENT, one a line.
builds() {
    v ops upgrade --output json | tr -d ' \n' | grep -oE '"(current|protocol)":[a-z0-9]+' | sed 's/.*://' | paste -sd' \n'
}
both() {
    local shown own
    shown=$(builds)
    own=$(grep -oE '(true [0-9]+|[0-9]+ true)' <<<"$shown" | grep -oE '[0-9]+')
    grep -qE "(false $((own - 1))|$((own - 1)) false)" <<<"$shown" || { echo "$shown"; return 1; }
}
only_own() {
    local shown
    shown=$(builds)
    [[ $shown != *false* ]] || { echo "$shown"; return 1; }
}
long_execution() {
    v exec repl up-busy --no-wait --output json \
        'const from = Date.now(); let n = 0; while (n < 120) { console.log("line", n++); while (Date.now() < from + n * 30); } n' \
        | tr -d ' \n' | grep -oE '"id":"[0-9a-f-]{36}"' | head -n 1 | cut -d'"' -f4
}
# All of its lines, once each.
lines() {
    [ "$(v exec events "$execution" --follow | grep -oE 'line [0-9]+' | uniq | wc -l)" = 120 ] || return 1
    v exec get "$execution"
}
journal() {
    journalctl --no-pager --output=cat --unit vm-system.service
}
announced() {
    journal | grep "the next protocol version is announced" | grep --quiet "$(id_of up-new)"
}
not_announced() {
    journal | grep "the next protocol version is not announced" | grep "$(id_of up-idle)"
}
id_of() {
    v session get "$1" --output json | tr -d ' \n' | grep -oE '"id":"[0-9a-f-]{36}"' | head -n 1 | cut -d'"' -f4
}
older_refused() {
    ! systemctl restart vm-system.service && journal | grep "start the newer build again"
}

install -m 0755 /usr/bin/vm-system "$before"
check "start of the build before" "" started systemctl start vm-system.service
check "template that restarts" "" v template create --name t-up-restart --on-crash restart
for name in up-idle up-busy up-asks; do
    check "session $name" "-" session t-root "$name"
done
check "session up-restarts" "-" session t-up-restart up-restarts
check "state" "" v exec repl up-idle 'globalThis.kept = 41; 0'
check "state of the one that restarts" "" v exec repl up-restarts 'globalThis.kept = 41; 0'
check "checkpoint" "" v session checkpoint up-idle
question=$(v exec repl up-asks --no-wait --output json 'CC("how many?") * 2' | tr -d ' \n' | grep -oE '"id":"[0-9a-f-]{36}"' | head -n 1 | cut -d'"' -f4)
execution=$(long_execution)
check "installation of the next build" "" replace "$next"
check "restart" "" started systemctl restart vm-system.service
check "state of a session of the build before" "42" v exec repl up-idle 'kept + 1'

check "its worker does not get the new message" "the next protocol version is not announced" not_announced
check "answer to a question of the build before" "" v task submit "$question" 21
check "the execution goes on, without a lost line" "ok" lines
check "a session of the next build" "-" session t-root up-new
check "its worker gets the new message" "" announced
check "it runs" "42" v exec repl up-new '6 * 7'
check "a fork of a session of the build before" "-" v session fork up-idle
check "ops upgrade shows both builds" "" both
check "deadline, and the wait for it" "All sessions run" v ops upgrade --drain-by 3s --wait
check "the session that restarts has a worker of the next build" "undefined" v exec repl up-restarts 'typeof kept'
check "another one was replaced" "replaced" v session get up-idle
check "only one build is left" "" only_own
check "installation of the build before" "" replace "$before"
check "it refuses to end the sessions of the newer build" "start the newer build again" older_refused
check "installation of the next build again" "" replace "$next"
check "start again" "" started systemctl start vm-system.service
check "the sessions went on" "42" v exec repl up-new '6 * 7'
systemctl stop vm-system.service
replace "$before"
