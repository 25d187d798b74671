#!/usr/bin/env bash
# Tests the clients and the examples: without a service, then beside one. `clients/test.sh typescript` tests one of them.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. clients/tools.sh

parts="${*:-generated typescript}"
for part in $parts; do
    case "$part" in
    generated) python3 clients/generate --check ;;
    typescript)
        build_typescript
        node --test clients/typescript/test/*.test.mjs
        clients/service.sh node --test clients/typescript/test/service.mjs
        ;;
    *) echo "unknown part $part: generated or typescript" >&2; exit 2 ;;
    esac
done
