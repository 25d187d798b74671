#!/usr/bin/env bash
# Tests the clients and the examples: without a service, then beside one. `clients/test.sh typescript` tests one of them.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. clients/tools.sh

test_python() {
    prepare_python
    (cd clients/python && mypy --cache-dir "$target/clients/mypy" && pytest -q -p no:cacheprovider)
    clients/service.sh pytest -q -p no:cacheprovider -c clients/python/pyproject.toml clients/python/tests/service.py
}

test_typescript() {
    build_typescript
    node --test clients/typescript/test/*.test.mjs
    clients/service.sh node --test clients/typescript/test/service.mjs
}

test_webchat() {
    (cd clients/typescript && install_node)
    node --test clients/webchat/test/*.test.mjs
    clients/typescript/node_modules/.bin/tsc -p clients/webchat/tsconfig.json
    folder="$(mktemp -d)"
    trap 'rm -rf "$folder"' EXIT
    mkdir -p "$folder/node_modules/@hotline"
    ln -s "$PWD/clients/webchat" "$folder/node_modules/@hotline/webchat"
    check_page "$folder"
}

test_examples() {
    build_typescript
    prepare_python
    clients/service.sh node --test clients/examples/test.mjs
}

# The examples of the site's pages of the API are calls that the clients have, with values of their types.
test_documented() {
    build_typescript
    python3 tools/site/api.py js >clients/typescript/dist/examples.ts
    (cd clients/typescript && npx tsc --noEmit --strict --exactOptionalPropertyTypes --target es2022 --module nodenext \
        --lib es2022,dom,dom.iterable,dom.asynciterable --types node dist/examples.ts)
    rm clients/typescript/dist/examples.ts
    prepare_python
    mkdir -p "$target/clients"
    python3 tools/site/api.py python >"$target/clients/examples.py"
    mypy --strict --cache-dir "$target/clients/mypy" "$target/clients/examples.py"
}

test_n8n() {
    clients/n8n.sh quick
}

for part in ${*:-generated typescript python webchat documented n8n examples}; do
    case "$part" in
    generated) python3 clients/generate --check ;;
    typescript | python | webchat | documented | n8n | examples) "test_$part" ;;
    *) echo "unknown part $part: generated, typescript, python, webchat, documented, n8n or examples" >&2; exit 2 ;;
    esac
done
