#!/usr/bin/env bash
# Asks the running service whatever its own API document allows, and much that it does not, and holds every answer
# against the document: https://schemathesis.readthedocs.io. Options of `st run` may follow.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

version=4.32.5
# The same requests each time, as far as the service's own ids are the same.
seed=1
# Requests made up for each operation; with those of the other phases, about a second an operation.
examples_max=20
# Longest a run may take before it counts as failed; more where everything is given more time.
seconds_max="$(awk "BEGIN { print int(240 * ${HOTLINE_TEST_PATIENCE:-1}) }")"
# Longest an answer may take: the test of a webhook waits 15 s for whatever address it was given.
answer_seconds_max=20
# Longest the service may take to start and to stop.
service_seconds_max=60

hooks="$PWD/tests/contract/schemathesis_hooks.py"
target="$(mkdir -p "${CARGO_TARGET_DIR:-target}" && cd "${CARGO_TARGET_DIR:-target}" && pwd)"
tools="$target/schemathesis"
checks=not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance
checks+=,response_headers_conformance,unsupported_method,allow_header_conformance,ignored_auth
checks+=,use_after_free,ensure_resource_availability

if [ ! -x "$tools/$version/bin/st" ]; then
    rm -rf "${tools:?}/$version"
    python3 -m venv "$tools/$version"
    "$tools/$version/bin/pip" install --quiet --disable-pip-version-check "schemathesis==$version"
fi

folder="$(mktemp -d)"
# The private PostgreSQL runs as another user when this is root.
chmod 711 "$folder"
# It is looked into before the service has begun to write it.
: >"$folder/demo"
service=
stop() {
    status=$?
    trap - EXIT
    if [ -n "$service" ] && kill -TERM "$service" 2>/dev/null; then
        timeout "$service_seconds_max" tail --pid="$service" -f /dev/null || kill -KILL "$service"
        wait "$service" || { echo "the service did not stop cleanly" >&2; [ "$status" -ne 0 ] || status=1; }
    fi
    if [ "$status" -ne 0 ]; then tail -n 50 "$folder/service.log" >&2 || true; fi
    rm -rf "$folder"
    exit "$status"
}
trap stop EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

"$target/debug/hotline" demo --listen 127.0.0.1:0 --rate-per-minute 0 --invalid-tokens-per-minute 0 --data-dir "$folder/data" \
    --visitor-sessions-per-minute 0 --visitor-messages-per-minute 0 --visitor-requests-per-minute 0 \
    >"$folder/demo" 2>"$folder/service.log" &
service=$!
for ((tenths = 0; ; tenths++)); do
    token="$(sed -n 's/^company [0-9]*, token //p' "$folder/demo")"
    [ -z "$token" ] || break
    if ! kill -0 "$service" 2>/dev/null || ((tenths > service_seconds_max * 10)); then
        echo "hotline does not start" >&2
        exit 1
    fi
    sleep 0.1
done
base="$(sed -n 's/^hotline is ready on //p' "$folder/demo")"

export HOTLINE_ORIGIN="$base" HOTLINE_TOKEN="$token"
export SCHEMATHESIS_HOOKS="$hooks" PYTHONDONTWRITEBYTECODE=1 PYTHONHASHSEED=0
# It leaves files where it runs. A stream of events has no end that could be waited for; `tests/api/events` reads it.
cd "$tools"
timeout --kill-after=10 "$seconds_max" "$tools/$version/bin/st" run "$base/api/v1/openapi.json" \
    --exclude-path /api/v1/events/stream --checks "$checks" --phases examples,coverage,fuzzing,stateful \
    --max-examples "$examples_max" --seed "$seed" --generation-database none \
    --continue-on-failure --request-timeout "$answer_seconds_max" --no-color "$@"
