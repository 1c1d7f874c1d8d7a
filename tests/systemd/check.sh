#!/usr/bin/env bash
# Runs inside the system that boot.sh boots, as root: the shipped units under the typical use of the product. Every check prints
# a line; the exit status is 1 if one failed.
set -uo pipefail

failed=0
# check NAME EXPECTED COMMAND…: the command must succeed and print the expected text.
check() {
    local name=$1 expected=$2 output
    shift 2
    if output=$("$@" 2>&1 </dev/null) && [[ $output == *"$expected"* ]]; then
        printf 'ok     %s: %s\n' "$unit" "$name"
    else
        printf 'FAILED %s: %s: expected %q, got:\n%s\n' "$unit" "$name" "$expected" "$output"
        failed=1
    fi
}

# The command line, as the caller of the section.
v() {
    "${as[@]}" vm-system --socket "$socket" "$@"
}

# A worktree with the files of the checks.
worktree() {
    local owner=$1 group=$2
    mkdir -p "$folder/lib"
    echo 'var greeting = "from the startup file"' >"$folder/setup.js"
    echo 'exports.twice = (x) => 2 * x' >"$folder/lib/double.js"
    echo 'console.log("twice", require("./lib/double.js").twice(args.n))' >"$folder/main.js"
    echo 'some text' >"$folder/data.txt"
    cat >"$folder/program.js" <<'JS'
function main() {
    const before = [fs.writeFile('out/note.txt', 'written'), fs.readFile('data.txt'), fs.readFile('absent')];
    const name = CC('who?');
    return [...before, fs.readFile('out/note.txt'), fs.listFiles('lib').length, name].join('|');
}
JS
    mkdir -p "$folder/files"
    echo '{"prompt": "whose turn?"}' >"$folder/files/words.json"
    cat >"$folder/files/task.mjs" <<'JS'
import words from './words.json';
let count = 0;
export const task = () => `${CC(words.prompt)} ${++count}`;
JS
    echo 'import { task } from "./task.mjs"; export const main = () => [task(), task()].join()' >"$folder/files/main.mjs"
    chown -R "$owner:$group" "$folder"
    chmod -R g+rwX "$folder"
}

# Typical use. The names of templates and executions are unique for each owner.
uses() {
    local template=t-$label session
    check "ops health" "" v ops health
    check "ops doctor" ": ok" v ops doctor
    check "template with fs, database and exec" "" v template create --name "$template" --module fs --module database --module exec
    check "right to write" "" v template add-capability "$template" --kind fs --name write --enabled
    check "right to run wc" "" v template add-capability "$template" --kind module --name exec --enabled \
        --config '{"commands": ["wc"]}'
    check "startup file" "" v template add-startup "$template" --path setup.js
    check "session" "-" v session create --template-id "$template" --workspace-id w --base-commit c \
        --worktree-path "$folder" --name "s-$label"
    session=s-$label
    check "what the startup file declared" "from the startup file" v exec repl "$session" greeting
    check "run-file and require of a file" "twice 42" v exec run-file "$session" main.js --args '{"n": 21}'
    check "import of a file" "14" v exec repl "$session" '(await import("./lib/double.js")).default.twice(7)'
    check "fs reads" "some text" v exec repl "$session" 'require("fs").readFileSync("data.txt", "utf8")'
    check "fs lists" "double.js" v exec repl "$session" 'require("fs").readdirSync("lib").join()'
    check "fs writes" "made" v exec repl "$session" \
        'require("fs").writeFileSync("made.txt", "made"); require("fs").readFileSync("made.txt", "utf8")'
    check "database" "7" v exec repl "$session" \
        'const db = require("database"); db.configure("sqlite3", "notes"); db.query("SELECT 3 + 4 AS n")[0].n'
    check "exec" "1 2 10" v exec repl "$session" \
        'require("exec").run("wc", [], { input: "some text\n" }).stdout.trim().split(/ +/).join(" ")'
    check "exec sees the worktree" "data.txt" v exec repl "$session" \
        'require("exec").run("wc", ["-c", "/work/data.txt"]).stdout'
    check "what a command sees of the host" "0 0" v exec repl "$session" \
        'require("exec").run("wc", ["-c", "/proc/self/mountinfo"]).stdout.split(" ")[0] + " " +
            require("exec").run("wc", ["-l", "/etc/passwd"]).stdout.length'
    check "fork of a session" "-" v session fork "$session"
    check "program starts and creates a task" "who?" v program start "$folder/program.js" --name "p-$label" \
        --worktree-path "$folder"
    check "program of several files" "whose turn?" v program start "$folder/files/main.mjs" --name "f-$label"
    check "state of the session" "" v exec repl "$session" 'globalThis.kept = 41; 0'
    check "the service restarts" "" started "${manage[@]}" restart vm-system.service
    if [ "$keeps" ]; then
        check "the session outlives the restart" "42" v exec repl "$session" 'kept + 1'
    else
        check "the session ended with the restart" "exited" v session get "$session"
    fi
    check "another daemon after a SIGKILL" "" killed
    if [ "$keeps" ]; then
        check "the session outlives the SIGKILL" "43" v exec repl "$session" 'kept + 2'
        check "its files, too" "some text" v exec repl "$session" 'require("fs").readFileSync("data.txt", "utf8")'
        check "ten restarts in a row" "" in_a_row started "${manage[@]}" restart vm-system.service
        check "the session outlives them" "44" v exec repl "$session" 'kept + 3'
        check "ten SIGKILLs in a row" "" in_a_row killed
        check "the session outlives them, too" "45" v exec repl "$session" 'kept + 4'
    fi
    check "task submit; readFile, writeFile and listFiles of a program" \
        $'true|some text\n||written|1|Ada' program_result "p-$label"
    check "the files of a program are stored with it" "whose turn?" v task submit "f-$label" Ada
    check "their variables, too" "Ada 1,Bob 2" v task submit "f-$label" Bob
}

# The service manager starts another daemon.
killed() {
    local pid next
    pid=$("${manage[@]}" show --property=MainPID --value vm-system.service)
    "${manage[@]}" kill --kill-whom=main --signal=KILL vm-system.service
    for _ in {1..100}; do
        next=$("${manage[@]}" show --property=MainPID --value vm-system.service)
        if [ "$next" != "$pid" ] && [ "$next" != 0 ] && v ops health; then return; fi
        sleep 0.1
    done
    "${manage[@]}" status --no-pager vm-system.service
    return 1
}

# More often than any limit of starts that systemd has by default, and within its interval.
in_a_row() {
    for _ in {1..10}; do "$@" || return 1; done
}

# In JSON, the line feed is two characters.
program_result() {
    v task submit "$1" Ada | sed 's/\\n/\n/g'
}

# The end of a unit's log, if its start failed.
started() {
    if "$@"; then return 0; fi
    journalctl --no-pager --lines=20 --output=cat
    return 1
}

alice=$(id -u alice)
mkdir -p /srv/work /srv/other /etc/vm-system /etc/systemd/system/vm-system.service.d

# ---- the system unit
unit="system unit"
cat >/etc/vm-system/config.toml <<'TOML'
worktree_roots = ["/srv/other"]

[[worktree_root]]
path = "/srv/work"
owners = ["user:alice"]

[allow_exec]
wc = "/usr/bin/wc"
TOML
controllers=$(cat /sys/fs/cgroup/cgroup.controllers)
# A systemd before 254 cannot start the next daemon in a group that passes controllers on: sessions end with the daemon.
keeps=yes
if [ -n "$controllers" ] && [ "$(systemctl --version | awk 'NR == 1 { print $2 }')" -lt 254 ]; then keeps=; fi
# Where the machine has no controller of cgroup v2, the daemon would not use its cgroup by itself.
if [ -z "$controllers" ]; then
    printf '\n[cgroups]\nsubtree = "/sys/fs/cgroup/system.slice/vm-system.service"\n' >>/etc/vm-system/config.toml
fi
cat >/etc/systemd/system/vm-system.service.d/worktrees.conf <<'UNIT'
[Service]
ExecStart=
ExecStart=/usr/bin/vm-system serve --keep-sessions --state-dir /var/lib/vm-system --socket /run/vm-system/control.sock \
    --config /etc/vm-system/config.toml
ReadWritePaths=/srv/work
UNIT
systemctl daemon-reload
check "start" "" started systemctl start vm-system.service
check "exposure" "" systemd-analyze security --no-pager --threshold=15 vm-system.service
systemd-analyze security --no-pager vm-system.service | tail -n 1

socket=/run/vm-system/control.sock
manage=(systemctl)
unit="system unit, root" label=root as=() folder=/srv/work/service
worktree vm-system vm-system
uses

unit="system unit, a member of the group" label=alice as=(runuser -u alice --) folder=/srv/work/alice
worktree alice vm-system
uses
check "cgroups: the daemon's own" "0::/system.slice/vm-system.service/supervisor" \
    cat "/proc/$(systemctl show --property=MainPID --value vm-system.service)/cgroup"
check "cgroups: a worker is in its owner's" "processes" \
    ls "/sys/fs/cgroup/system.slice/vm-system.service/owner-uid:$alice"
check "cgroups: doctor shows them" "/sys/fs/cgroup/system.slice/vm-system.service: " v ops doctor
not_listed() {
    ! v session create --template-id "t-$label" --workspace-id w --base-commit c --worktree-path /srv/other
}
check "a root that does not list the user is refused" "not a folder beneath any worktree root" not_listed

unit="system unit"
as=()
# ---- reload
notified() {
    local wanted=$1 status
    for _ in {1..100}; do
        status=$(systemctl show --property=StatusText --value vm-system.service)
        if [[ $status == *"$wanted"* && $(systemctl is-active vm-system.service) == active ]]; then return; fi
        sleep 0.1
    done
    echo "the status is: $status"
    return 1
}
reloaded() {
    local pid
    pid=$(systemctl show --property=MainPID --value vm-system.service)
    systemctl reload vm-system.service && notified "$1" || return 1
    [ "$(systemctl show --property=MainPID --value vm-system.service)" = "$pid" ] || { echo "it was restarted"; return 1; }
}
cp /etc/vm-system/config.toml /etc/vm-system/config.before-reload.toml
printf '\n[[worktree_root]]\npath = "/srv/later"\n' >>/etc/vm-system/config.toml
check "reload: a root that does not exist changes nothing" "" reloaded "previous configuration"
(folder=/srv/later && worktree vm-system vm-system)
later() {
    v session create --template-id t-root --workspace-id w --base-commit c --worktree-path /srv/later --name "$1"
}
check "reload: the new root is not in use yet" "" eval '! later too-early'
check "reload: a new root is used without a restart" "" reloaded "configuration was read again"
check "reload: a session beneath the new root" "-" later after-reload
sed -i '1i stop_s = 4' /etc/vm-system/config.toml
check "reload: what needs a restart is named" "" reloaded "need a restart: stop_s"
mv /etc/vm-system/config.before-reload.toml /etc/vm-system/config.toml
check "reload: as before" "" reloaded "configuration was read again"

# ---- HTTP from outside: the daemon has no network, so the service manager listens.
http() {
    local answer
    exec 9<>/dev/tcp/127.0.0.1/3210 || return 1
    printf 'GET /api/v1/templates HTTP/1.1\r\nHost: localhost\r\n%sConnection: close\r\n\r\n' "$1" >&9
    answer=$(timeout 20 cat <&9)
    exec 9<&- 9>&-
    printf '%s\n' "$answer"
}
token=$(head -c 32 /dev/urandom | base64 | tr -d '=+/')
printf '[[token]]\nname = "ci"\nrole = "user"\nsha256 = "%s"\n' "$(printf %s "$token" | sha256sum | cut -d' ' -f1)" >/etc/vm-system/tokens.toml
chown vm-system:vm-system /etc/vm-system/tokens.toml
chmod 0600 /etc/vm-system/tokens.toml
printf '\n[http]\ntokens = "/etc/vm-system/tokens.toml"\n' >>/etc/vm-system/config.toml
http_starts() {
    systemctl stop vm-system.service && systemctl start vm-system-http.socket
}
check "HTTP: the socket of the service manager" "" started http_starts
check "HTTP: a connection starts the daemon, which refuses it without a token" "401" http ""
check "HTTP: a token is accepted" "200 OK" http "Authorization: Bearer $token"$'\r\n'
check "HTTP: the same socket after a restart" "" started systemctl restart vm-system.service
check "HTTP: a token is accepted after a restart" "200 OK" http "Authorization: Bearer $token"$'\r\n'
# A binary that cannot run, for longer than the limit of triggers that systemd has by default.
broken() {
    mv /usr/bin/vm-system /usr/bin/vm-system.away && ln -s /bin/false /usr/bin/vm-system
}
whole() {
    mv -f /usr/bin/vm-system.away /usr/bin/vm-system
}
http_waits() {
    local answer
    systemctl stop vm-system.service && broken
    exec 9<>/dev/tcp/127.0.0.1/3210 || return 1
    printf 'GET /api/v1/templates HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n' >&9
    sleep 4
    whole
    answer=$(timeout 30 cat <&9)
    exec 9<&- 9>&-
    printf '%s\n' "$answer"
    systemctl is-active vm-system-http.socket
}
check "HTTP: a connection waits for a daemon that starts at last" "401" http_waits
systemctl stop vm-system-http.socket
check "HTTP: without the socket unit" "" started systemctl restart vm-system.service

# ---- requests of scripts: the daemon has no network, so the service manager starts the process that makes them.
server='
    use IO::Socket::INET;
    my $server = IO::Socket::INET->new(LocalAddr => "127.0.0.1:8099", Listen => 5, ReuseAddr => 1) or die "$!";
    while (my $client = $server->accept) {
        while (<$client>) { last if /^\r?$/ }
        print $client "HTTP/1.1 200 OK\r\nContent-Length: 7\r\nConnection: close\r\n\r\nfetched";
        close $client;
    }'
runuser -u alice -- perl -e "$server" &
server_pid=$!
cp /etc/vm-system/config.toml /etc/vm-system/config.before-egress.toml
sed -i '1i egress_socket = "/run/vm-system-egress/socket"\nallow_net_private = ["http://127.0.0.1:8099"]' /etc/vm-system/config.toml
egress_starts() {
    systemctl start vm-system-egress.socket && systemctl restart vm-system.service
}
check "egress: start" "" started egress_starts
check "egress: template with a right" "" v template create --name fetching
check "egress: right" "" v template add-capability fetching --kind net --name local --enabled \
    --config '{"allow": ["http://127.0.0.1:8099"], "private": true}'
check "egress: session" "-" v session create --template-id fetching --workspace-id w --base-commit c \
    --worktree-path /srv/work/service --name fetching
request='await (await fetch("http://127.0.0.1:8099/")).text()'
check "egress: a script makes a request" "fetched" v exec repl fetching "$request"
check "egress: doctor" "egress" v ops doctor
kill "$server_pid"
mv /etc/vm-system/config.before-egress.toml /etc/vm-system/config.toml
systemctl stop vm-system-egress.socket
check "egress: without the socket unit" "" started systemctl restart vm-system.service

watchdog() {
    local pid next
    pid=$(systemctl show --property=MainPID --value vm-system.service)
    sleep 5
    [ "$(systemctl show --property=MainPID --value vm-system.service)" = "$pid" ] || { echo "it was restarted"; return 1; }
    systemctl kill --kill-whom=main --signal=STOP vm-system.service
    for _ in {1..100}; do
        next=$(systemctl show --property=MainPID --value vm-system.service)
        if [ "$next" != "$pid" ] && [ "$next" != 0 ] && v ops health; then
            systemctl show --property=NRestarts vm-system.service
            return
        fi
        sleep 0.2
    done
    systemctl status --no-pager vm-system.service
    return 1
}
printf '[Service]\nWatchdogSec=2\n' >/etc/systemd/system/vm-system.service.d/watchdog.conf
systemctl daemon-reload
check "restart for a shorter watchdog" "" started systemctl restart vm-system.service
check "watchdog: a daemon that works stays, a stopped one is restarted" "NRestarts=1" watchdog
rm /etc/systemd/system/vm-system.service.d/watchdog.conf
systemctl daemon-reload
# No process is left, if that takes no more than two seconds.
ended() {
    local left
    for _ in {1..20}; do
        # Groups without processes may stay.
        left=$(find /sys/fs/cgroup/system.slice/vm-system.service -name cgroup.procs -exec grep -H . {} + 2>/dev/null)
        [ -n "$left" ] || return 0
        sleep 0.1
    done
    echo "$left"
    return 1
}
stopped() {
    systemctl stop vm-system.service && ended
}
live() {
    v session create --template-id t-root --workspace-id w --base-commit c --worktree-path /srv/work/service --name "$1"
}
check "a session before the stop" "-" live before-stop
check "no process is left after its stop" "" stopped
check "start after a stop" "" started systemctl start vm-system.service
if [ "$keeps" ]; then reason=host_restart; else reason=exited; fi
check "the session ended with the stop" "$reason" v session get before-stop
check "a session before a crash" "-" live before-crash
# The daemon is dead when the service is stopped: nothing but the lifeline ends its sessions.
crashed() {
    printf '[Service]\nRestartSec=60\n' >/etc/systemd/system/vm-system.service.d/slow.conf
    systemctl daemon-reload
    systemctl kill --kill-whom=main --signal=KILL vm-system.service
    for _ in {1..50}; do
        [ "$(systemctl show --property=SubState --value vm-system.service)" = auto-restart ] && break
        sleep 0.1
    done
    grep --quiet . /sys/fs/cgroup/system.slice/vm-system.service/zygotes/cgroup.procs || { echo "no keeper waits"; return 1; }
    systemctl stop vm-system.service && ended
}
if [ "$keeps" ]; then check "no process is left after a crash and a stop" "" crashed; fi
rm -f /etc/systemd/system/vm-system.service.d/slow.conf
systemctl daemon-reload

# Whether a process has these arguments.
runs() {
    local arguments
    for arguments in /proc/[0-9]*/cmdline; do
        if tr '\0' ' ' 2>/dev/null <"$arguments" | grep --quiet -- "$1"; then return 0; fi
    done
    return 1
}

# ---- the limits of owners, where this kernel has the controllers
limits() {
    check "start with limits of owners" "" started systemctl restart vm-system.service
    check "doctor shows the controllers" "cpu memory pids" v ops doctor
    local theirs=/sys/fs/cgroup/system.slice/vm-system.service/owner-uid:$alice
    v template create --name t-limits --module exec --mem-mb 512 --wall-ms 60000
    v template add-capability t-limits --kind module --name exec --enabled \
        --config '{"commands": ["tail"], "timeout_ms": 50000}'
    check "a session of another owner" "-" v session create --template-id t-limits --workspace-id w --base-commit c \
        --worktree-path /srv/work/service --name of-root
    as=(runuser -u alice --)
    check "template of alice" "" v template create --name t-of-alice --module exec --mem-mb 512 --wall-ms 60000
    check "session of alice" "-" v session create --template-id t-of-alice --workspace-id w --base-commit c \
        --worktree-path /srv/work/alice --name of-alice
    check "memory.max" "134217728" cat "$theirs/memory.max"
    check "pids.max" "77" cat "$theirs/pids.max"
    greedy() {
        ! v exec repl of-alice 'const kept = []; for (;;) kept.push(new Uint8Array(1 << 20).fill(1))'
    }
    check "an owner beyond its memory loses the worker" "killed(out_of_memory)" greedy
    check "session get says why" "its owner, or the service, had no memory left" v session get of-alice
    as=()
    check "the other owner continues" "42" v exec repl of-root '6 * 7'
    check "a command beyond its memory" "ENOMEM" v exec repl of-root \
        'try { require("exec").run("tail", ["-c", "5500000"], { input: "x".repeat(6000000) }).stdout.length }
            catch (error) { error.code + " " + error.message }'
}
unit="system unit, controllers"
if [[ $controllers == *memory* ]]; then
    cp /etc/vm-system/config.toml /etc/vm-system/config.without-limits.toml
    sed -i 's/^wc = .*/&\ntail = "\/usr\/bin\/tail"/' /etc/vm-system/config.toml
    printf '\n[cgroups]\nowner_memory_mb = 128\nowner_processes = 77\ncommand_memory_mb = 4\n' >>/etc/vm-system/config.toml
    limits
    mv /etc/vm-system/config.without-limits.toml /etc/vm-system/config.toml
    check "stop" "" systemctl stop vm-system.service
else
    printf 'SKIPPED: limits of owners: this kernel has no controllers of cgroup v2 (boot.sh --emulated has)\n'
fi

# ---- an upgrade, if there is a second build
if [ -e /usr/local/lib/vm-system-next ] && [ ! "$keeps" ]; then
    printf 'SKIPPED: upgrade: with this systemd and controllers of cgroup v2 sessions end with the daemon\n'
elif [ -e /usr/local/lib/vm-system-next ]; then
    # shellcheck source=tests/systemd/upgrade.sh
    . /usr/local/lib/vm-system-upgrade.sh
fi

# ---- the system unit with files agents of a user
unit="files agent"
cp /etc/vm-system/config.toml /etc/vm-system/config.without-agents.toml
cat >/etc/vm-system/config.toml <<'TOML'
agent_sockets = "/run/vm-files"

[allow_exec]
wc = "/usr/bin/wc"

[cgroups]
subtree = "/sys/fs/cgroup/system.slice/vm-system.service"
TOML
check "socket" "" started systemctl enable --now "vm-files@$alice.socket"
check "start" "" started systemctl start vm-system.service
as=(runuser -u alice --) label=agent folder=/home/alice/private
worktree alice alice
chmod 0700 /home/alice "$folder"
uses
owners() {
    stat --format=%U "$folder/made.txt" "$folder/out/note.txt" | sort -u
    runs 'files-agent [l]isten' || echo "no agent"
}
check "files that were made belong to the user" "alice" owners
# Owners have groups here. A worker is in its owner's; what the agent starts stays in the agent's unit, from which the daemon may not
# move it: files and commands work all the same, as seen above.
check "cgroups: doctor says what is outside of them" "vm-files@UID.service hold" v ops doctor
check "cgroups: a worker is in its owner's, beside an agent" "processes" \
    ls "/sys/fs/cgroup/system.slice/vm-system.service/owner-uid:$(id -u alice)"
as=()
without_socket() {
    ! v session create --template-id t-root --workspace-id w --base-commit c --worktree-path /srv/other --as-user bin
}
check "a user without a socket has no agent" "enable vm-files@2.socket" without_socket
impostor() {
    systemctl stop "vm-files@$alice.socket" "vm-files@$alice.service"
    mkdir -p /etc/systemd/system/vm-files@.service.d
    printf '[Service]\nUser=bin\n' >/etc/systemd/system/vm-files@.service.d/user.conf
    systemctl daemon-reload
    systemctl start "vm-files@$alice.socket"
    ! v session create --template-id t-root --workspace-id w --base-commit c --worktree-path "$folder" --as-user alice
}
check "a process of another user is not taken for the agent" "is served by uid 2, not $alice" impostor
rm -r /etc/systemd/system/vm-files@.service.d
systemctl stop "vm-files@$alice.service"
systemctl daemon-reload
# The daemon counts failures by user.
systemctl restart vm-system.service
agent_back() {
    local name
    systemctl stop "vm-files@$alice.service"
    mkdir -p /etc/systemd/system/vm-files@.service.d
    printf '[Service]\nExecStart=\nExecStart=/bin/false\n' >/etc/systemd/system/vm-files@.service.d/fails.conf
    systemctl daemon-reload
    # It fails more often than the limits of starts and triggers that systemd has by default permit.
    for name in 1 2 3; do
        ! v session create --template-id t-root --workspace-id w --base-commit c --worktree-path "$folder" --as-user alice || return 1
    done
    rm -r /etc/systemd/system/vm-files@.service.d
    systemctl daemon-reload
    for _ in {1..60}; do
        if v session create --template-id t-root --workspace-id w --base-commit c --worktree-path "$folder" --as-user alice; then
            return
        fi
        sleep 0.5
    done
    systemctl status --no-pager "vm-files@$alice.socket" "vm-files@$alice.service"
    return 1
}
check "an agent that could not start is back by itself" "" agent_back
systemctl stop vm-system.service "vm-files@$alice.socket"
agents_ended() {
    ! runs 'files-agent [l]isten'
}
check "no agent is left" "" agents_ended
mv /etc/vm-system/config.without-agents.toml /etc/vm-system/config.toml
systemctl daemon-reload

# ---- the daemon started as root
unit="started as root" socket=/run/as-root/control.sock
as_root() {
    systemd-run --quiet --unit=as-root --property=Type=notify --property=Delegate=yes --property=RuntimeDirectoryPreserve=no \
        vm-system serve --state-dir /var/lib/as-root --socket "$socket" --config /etc/vm-system/as-root.toml
}
printf 'socket_group = "vm-system"\n[allow_exec]\nwc = "/usr/bin/wc"\n' >/etc/vm-system/as-root.toml
check "start" "" started as_root
as=(runuser -u alice --) label=as-root folder=/home/alice/as-root
manage=(restart_as_root)
restart_as_root() { systemctl restart as-root.service; }
worktree alice alice
check "ops health" "" v ops health
check "template" "" v template create --name as-root --module fs --module exec
check "right to run wc" "" v template add-capability as-root --kind module --name exec --enabled --config '{"commands": ["wc"]}'
check "session in a private folder" "-" v session create --template-id as-root --workspace-id w --base-commit c \
    --worktree-path "$folder" --name s-as-root
check "fs reads" "some text" v exec repl s-as-root 'require("fs").readFileSync("data.txt", "utf8")'
check "exec" "data.txt" v exec repl s-as-root 'require("exec").run("wc", ["-c", "/work/data.txt"]).stdout'
as=()
rights() {
    local pid
    pid=$(systemctl show --property=MainPID --value as-root.service)
    grep -E '^(Uid|CapEff|CapBnd|NoNewPrivs):' "/proc/$pid/status" | tr '\t\n' '  '
}
check "the daemon has no rights" "CapEff: 0000000000000000 CapBnd: 0000000000000000 NoNewPrivs: 1" rights
check "doctor shows the helper" "kill, setgid, setuid: e0 (bounding set e0)" v ops doctor
systemctl stop as-root.service
left() { ! runs 'spawn-[h]elper'; }
check "no helper is left" "" left
manage=(systemctl)

# ---- the user unit
unit="user unit"
mkdir -p /home/alice/.cargo/bin /home/alice/.config/systemd/user/vm-system.service.d
install -m 0755 /usr/bin/vm-system /home/alice/.cargo/bin/vm-system
cat >/home/alice/.config/systemd/user/vm-system.service.d/exec.conf <<'UNIT'
[Service]
ExecStart=
ExecStart=%h/.cargo/bin/vm-system serve --keep-sessions --state-dir %S/vm-system --socket %t/vm-system/control.sock --allow-exec wc=/usr/bin/wc
UNIT
chown -R alice:alice /home/alice
check "user manager" "" started systemctl start "user@$alice.service"
as=(runuser -u alice -- env "XDG_RUNTIME_DIR=/run/user/$alice")
manage=("${as[@]}" systemctl --user)
check "start" "" started "${manage[@]}" start vm-system.service
socket=/run/user/$alice/vm-system/control.sock label=user folder=/home/alice/work
worktree alice alice
uses

# ---- errors under a unit that forbids openat2
unit="openat2 is refused"
printf '[Service]\nRestrictSUIDSGID=yes\n' >/etc/systemd/system/vm-system.service.d/suid.conf
systemctl daemon-reload
refused() {
    if systemctl start vm-system.service; then
        echo "the daemon started"
        return 1
    fi
    journalctl --no-pager --output=cat --unit vm-system.service
}
check "RestrictSUIDSGID=yes: the daemon does not start and names the setting" "RestrictSUIDSGID=yes" refused
systemctl stop vm-system.service
embedded() {
    ! systemd-run --quiet --wait --pipe --property=DynamicUser=yes vm-system run --eval 1
}
check "DynamicUser=yes: run names the setting" "DynamicUser=yes" embedded

exit "$failed"
