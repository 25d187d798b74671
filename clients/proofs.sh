#!/usr/bin/env bash
# 10,000 writes of each client through ten kills, a list that shifts, and events over lost connections: `make
# clients-proofs`. `clients/proofs.sh python` proves one of them. CLIENTS_WRITES is the number of writes.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. clients/tools.sh

export HOTLINE_KILLS="${HOTLINE_KILLS:-10}"
for client in ${*:-typescript python}; do
    echo "$client:"
    case "$client" in
    typescript)
        build_typescript
        clients/service.sh node clients/proofs/run.mjs
        ;;
    python)
        prepare_python
        clients/service.sh python3 clients/proofs/run.py
        ;;
    *) echo "unknown client $client: typescript or python" >&2; exit 2 ;;
    esac
done
