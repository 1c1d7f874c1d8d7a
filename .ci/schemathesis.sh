#!/usr/bin/env bash
# Requests that are generated from docs/openapi.json (except for the upgrade, after which a connection has no HTTP), against a daemon
# of their own: schemathesis.sh BINARY [OPTION…]
set -euo pipefail
cd "$(dirname "$0")/.."
binary=$(realpath "$1")
shift
folder=$(mktemp -d)
# A daemon that root starts becomes another user, which must reach the folder.
chmod 0755 "$folder"
as=()
if [ "$(id -u)" = 0 ]; then as=(--user "${VM_SYSTEM_USER:-nobody}" --root-files); fi
port=${PORT:-18473}
printf '[http]\nlisten = ["127.0.0.1:%s"]\n' "$port" >"$folder/config.toml"
"$binary" serve "${as[@]}" --state-dir "$folder/state" --config "$folder/config.toml" >"$folder/log" 2>&1 &
daemon=$!
trap 'kill "$daemon" 2>/dev/null; wait "$daemon" || true; rm -rf "$folder"' EXIT
until "$binary" --state-dir "$folder/state" ops health >/dev/null 2>&1; do
    kill -0 "$daemon" || { cat "$folder/log"; exit 1; }
    sleep 0.1
done
repository=$PWD
# It writes a folder of its own.
cd "$folder"
SCHEMATHESIS_HOOKS="$repository/.ci/schemathesis_checks.py" schemathesis --config-file "$repository/.ci/schemathesis.toml" \
    run "$repository/docs/openapi.json" --url "http://127.0.0.1:$port/api/v1" --exclude-path /control --continue-on-failure \
    --max-time "${SCHEMATHESIS_S:-600}" "$@"
