#!/usr/bin/env bash
# Runs a command beside a service of its own: `clients/service.sh COMMAND…`. The service has a private PostgreSQL, a
# company, a token and a webchat, made by the command line. The command gets HOTLINE_URL, HOTLINE_API_KEY,
# HOTLINE_CHANNEL, HOTLINE_PUBLIC_KEY and HOTLINE_IDENTITY_SECRET.
#
# With HOTLINE_KILLS=10 the service is killed (SIGKILL) ten times while the command runs, each time it has served for
# one to three seconds, and started again. HOTLINE_KILLS_FILE then has a line for each kill.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

target="${CARGO_TARGET_DIR:-target}"
export HOTLINE_TEST_BINARY="${HOTLINE_TEST_BINARY:-$(cd "$target" && pwd)/debug/hotline}"
# Longest the service may take to start and to stop.
seconds_max=90

[ -x "$HOTLINE_TEST_BINARY" ] || { echo "$HOTLINE_TEST_BINARY does not exist; build it: cargo build --workspace --all-features --bin hotline" >&2; exit 1; }
parent="${TMPDIR:-/tmp}"
[ ! -w /dev/shm ] || parent=/dev/shm
folder="$(mktemp -d "$parent/hotline-clients.XXXXXX")"
# The private PostgreSQL runs as another user when this is root.
chmod 711 "$folder"
export HOTLINE_DATA_DIR="$folder/data" HOTLINE_KILLS_FILE="$folder/kills"
: >"$HOTLINE_KILLS_FILE"
port="$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')"
export HOTLINE_URL="http://127.0.0.1:$port"
killer=
pid_file="$folder/pid"

# Without what is only for clients, which the service would report as unknown options.
hotline() {
    exec env -u HOTLINE_TEST_BINARY -u HOTLINE_TEST_PATIENCE -u HOTLINE_KILLS -u HOTLINE_KILLS_FILE -u HOTLINE_URL -u HOTLINE_API_KEY \
        -u HOTLINE_CHANNEL -u HOTLINE_PUBLIC_KEY -u HOTLINE_IDENTITY_SECRET "$HOTLINE_TEST_BINARY" "$@"
}

# Not a child of this shell, which would report its death.
start() {
    (
        hotline serve --listen "127.0.0.1:$port" --rate-per-minute 0 --webhook-allow-network 127.0.0.0/8 \
            --max-page-size 100 >>"$folder/out" 2>>"$folder/log" &
        echo $! >"$pid_file"
    )
}

wait_until_ready() {
    for ((tenths = 0; ; tenths++)); do
        if curl -sf -o /dev/null --max-time 5 "$HOTLINE_URL/health/ready"; then return; fi
        if ! kill -0 "$(cat "$pid_file")" 2>/dev/null || ((tenths > seconds_max * 10)); then
            echo "hotline does not start:" >&2
            tail -n 20 "$folder/log" >&2
            return 1
        fi
        sleep 0.1
    done
}

stop() {
    status=$?
    trap - EXIT
    if [ -n "$killer" ]; then kill "$killer" 2>/dev/null || true; wait "$killer" 2>/dev/null || true; fi
    pid="$(cat "$pid_file" 2>/dev/null || true)"
    if [ -n "$pid" ] && kill -TERM "$pid" 2>/dev/null; then
        timeout "$seconds_max" tail --pid="$pid" -f /dev/null || kill -KILL "$pid" || true
    fi
    if [ "$status" -ne 0 ]; then echo "the last lines of the service's log:" >&2; tail -n 20 "$folder/log" >&2 || true; fi
    rm -rf "$folder"
    exit "$status"
}
trap stop EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# A field of the JSON that a command prints.
field() { python3 -c 'import json, sys; print(json.load(sys.stdin)[sys.argv[1]])' "$1"; }

kill_often() {
    for ((kills = 0; kills < HOTLINE_KILLS; kills++)); do
        sleep "$((1 + RANDOM % 2)).$((RANDOM % 10))"
        kill -KILL "$(cat "$pid_file")"
        echo "killed" >>"$HOTLINE_KILLS_FILE"
        start
        wait_until_ready
    done
}

start
wait_until_ready
company="$(hotline company create Clients --json | field id)"
HOTLINE_API_KEY="$(hotline token create clients --company "$company" --all --json | field key)"
channel="$(hotline channel create Website --company "$company" --type webchat \
    --allow-origin https://shop.example --json)"
HOTLINE_CHANNEL="$(field id <<<"$channel")"
HOTLINE_PUBLIC_KEY="$(field publicKey <<<"$channel")"
HOTLINE_IDENTITY_SECRET="$(hotline channel rotate-identity-secret "$HOTLINE_CHANNEL" --json | field identitySecret)"
export HOTLINE_API_KEY HOTLINE_CHANNEL HOTLINE_PUBLIC_KEY HOTLINE_IDENTITY_SECRET
if [ -n "${HOTLINE_KILLS:-}" ]; then
    kill_often &
    killer=$!
fi
"$@"
