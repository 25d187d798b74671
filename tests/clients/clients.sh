#!/usr/bin/env bash
# Makes clients of the API document with five generators, compiles them, and has the first conversation with each.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

python_client=0.29.1
generator=7.26.0
# Longest the service may take to start and to stop.
service_seconds_max=60

tests="$PWD/tests/clients"
document="$PWD/openapi.json"
target="$(mkdir -p "${CARGO_TARGET_DIR:-target}" && cd "${CARGO_TARGET_DIR:-target}" && pwd)"
clients="$target/clients"
tools="$clients/tools-$python_client-$generator"

if [ ! -x "$tools/bin/openapi-generator-cli" ]; then
    rm -rf "$tools"
    python3 -m venv "$tools"
    "$tools/bin/pip" install --quiet --disable-pip-version-check "openapi-python-client==$python_client" \
        "openapi-generator-cli==$generator" 'urllib3>=2.1,<3' 'python-dateutil>=2.8.2' 'pydantic>=2' typing-extensions
fi

made="$clients/made"
rm -rf "$made"
mkdir -p "$made"
ln -s "$tests/node_modules" "$made/node_modules"
ln -s "$tests/package.json" "$made/package.json"
cp -r "$tests/conversations" "$made/conversations"
bin="$tests/node_modules/.bin"
# If a generator fails, its log is printed, because its name alone says nothing about the cause.
generate() {
    name="$1"
    shift
    "$@" >"$made/$name.log" 2>&1 || { cat "$made/$name.log" >&2; echo "$name: no client was made" >&2; return 1; }
    echo "$name: made"
}
generate openapi-typescript "$bin/openapi-typescript" "$document" -o "$made/openapi-fetch/schema.ts"
generate hey-api "$bin/openapi-ts" -i "$document" -o "$made/hey"
generate openapi-python-client "$tools/bin/openapi-python-client" generate --path "$document" --meta none \
    --output-path "$made/hotline_client"
# openapi-generator takes the payloads of webhooks for calls of a client's, and makes what does not compile.
calls="$made/calls.json"
python3 -c 'import json, sys; document = json.load(open(sys.argv[1])); document.pop("webhooks"); json.dump(document, open(sys.argv[2], "w"))' \
    "$document" "$calls"
# By its default it leaves out what only forms refer to, and then refers to it.
generate typescript-fetch "$tools/bin/openapi-generator-cli" generate -i "$calls" -g typescript-fetch \
    --global-property skipFormModel=false -o "$made/typescript-fetch"
generate python "$tools/bin/openapi-generator-cli" generate -i "$calls" -g python \
    --global-property skipFormModel=false --additional-properties packageName=hotline_generated -o "$made/generated"

# As strict as a careful team has it, but for what generators write in their own files.
(cd "$made" && "$bin/tsc" --noEmit --strict --target es2022 --module esnext --moduleResolution bundler \
    --lib es2022,dom,dom.iterable --types node conversations/*.ts)
# What generators import without the ending of a file, node does not find.
(cd "$made" && "$bin/esbuild" --log-level=warning --bundle --platform=node --format=esm --outdir=bundled \
    conversations/openapi_fetch.ts conversations/hey_api.ts conversations/typescript_fetch.ts)
"$tools/bin/python" -m compileall -q "$made/hotline_client" "$made/generated/hotline_generated"
echo "the clients compile"

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

"$target/debug/hotline" demo --listen 127.0.0.1:0 --rate-per-minute 0 --data-dir "$folder/data" \
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
HOTLINE_ORIGIN="$(sed -n 's/^hotline is ready on //p' "$folder/demo")"
export HOTLINE_ORIGIN HOTLINE_TOKEN="$token" PYTHONDONTWRITEBYTECODE=1

failed=0
for conversation in openapi_fetch hey_api typescript_fetch; do
    node "$made/bundled/$conversation.js" || failed=$((failed + 1))
done
for conversation in python_client python_generator; do
    PYTHONPATH="$made:$made/generated" "$tools/bin/python" "$tests/conversations/$conversation.py" || failed=$((failed + 1))
done
echo "$((5 - failed)) passed, $failed failed"
[ "$failed" -eq 0 ]
