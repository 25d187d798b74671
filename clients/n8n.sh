#!/usr/bin/env bash
# The n8n node: builds it, checks it by n8n's own rules, tests it alone, packs it, and runs it in a real n8n beside a
# service: `make clients-n8n`. n8n is installed in target/clients (2 GB, some minutes). `clients/n8n.sh quick` does all
# but what needs n8n. N8N names the command of an n8n that is there.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. clients/tools.sh

build_n8n_node
(cd clients/n8n && npm run --silent lint && node --test test/*.test.mjs)
[ "${1:-}" != quick ] || exit 0

packages="$target/clients/n8n-package"
rm -rf "$packages"
mkdir -p "$packages"
(cd clients/n8n && npm pack --silent --pack-destination "$packages" >/dev/null)
N8N_PACKAGE="$(echo "$packages"/*.tgz)"

if [ -z "${N8N:-}" ]; then
    n8n="$target/clients/n8n-$(sha256sum clients/n8n/test/install/package.json | cut -c-12)"
    if [ ! -e "$n8n/installed" ]; then
        rm -rf "$n8n"
        mkdir -p "$n8n"
        cp clients/n8n/test/install/package.json "$n8n"
        # No scripts of two thousand packages, but for the one that compiles the database, with the headers beside this Node.
        (cd "$n8n" && npm install --ignore-scripts --no-audit --no-fund --loglevel=error)
        headers="$(dirname "$(dirname "$(readlink -f "$(command -v node)")")")"
        if [ -d "$headers/include/node" ]; then export npm_config_nodedir="$headers"; fi
        (cd "$n8n" && npm rebuild --silent --build-from-source sqlite3)
        touch "$n8n/installed"
    fi
    N8N="$n8n/node_modules/.bin/n8n"
fi
build_typescript
export N8N N8N_PACKAGE
clients/service.sh node --test clients/n8n/test/n8n.mjs
