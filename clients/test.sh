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

test_examples() {
    build_typescript
    prepare_python
    clients/service.sh node --test clients/examples/test.mjs
}

for part in ${*:-generated typescript python examples}; do
    case "$part" in
    generated) python3 clients/generate --check ;;
    typescript | python | examples) "test_$part" ;;
    *) echo "unknown part $part: generated, typescript, python or examples" >&2; exit 2 ;;
    esac
done
