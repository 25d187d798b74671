#!/usr/bin/env bash
# Builds the packages of both clients, of the widget's types and of the n8n node into target/clients/packages, checks
# their contents, and installs each into an empty folder: `make clients-package`.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. clients/tools.sh
root="$PWD"

packages="$target/clients/packages"
empty="$(mktemp -d)"
trap 'rm -rf "$empty"' EXIT
rm -rf "$packages"
mkdir -p "$packages"

build_typescript
(cd clients/typescript && npx publint --strict && npm pack --silent --pack-destination "$packages")
archive="$(echo "$packages"/hotline-client-*.tgz)"
# The package has ESM only, which `require` loads from Node 22 on.
(cd clients/typescript && npx attw "$archive" --profile esm-only)
(
    cd "$empty"
    echo '{"type": "module"}' >package.json
    npm install --silent --no-audit --no-fund --offline "$archive"
    node -e 'import("@hotline/client").then(({ OPERATIONS, VERSION }) => console.log("@hotline/client", VERSION, Object.keys(OPERATIONS).length, "operations"))'
    node -e 'import("@hotline/client/node").then(({ fromPath }) => { if (typeof fromPath !== "function") process.exit(1); })'
)

# The widget's package has types only, without code.
(cd clients/webchat && ../typescript/node_modules/.bin/publint --strict && npm pack --silent --pack-destination "$packages")
(cd clients/typescript && npx attw "$packages"/hotline-webchat-*.tgz --profile esm-only)
mkdir "$empty/page"
(cd "$empty/page" && echo '{"type": "module"}' >package.json && npm install --silent --no-audit --no-fund --offline "$packages"/hotline-webchat-*.tgz)
check_page "$empty/page"

build_n8n_node
(cd clients/n8n && npm run --silent lint && npm pack --silent --pack-destination "$packages")

prepare_python
(cd clients/python && mypy --strict --cache-dir "$target/clients/mypy" src)
python3 -m build --quiet --no-isolation --outdir "$packages" clients/python
twine check --strict "$packages"/*.whl "$packages"/*.tar.gz
python3 -m venv --system-site-packages "$empty/venv"
"$empty/venv/bin/pip" install --quiet --disable-pip-version-check "$packages"/*.whl
(cd "$empty" && PYTHONPATH='' venv/bin/python -c 'import hotline; print("hotline-client", hotline.VERSION, len(hotline.OPERATIONS), "operations")')
# The node loads when its only dependency comes from outside, as from n8n: here from NODE_PATH.
mkdir "$empty/n8n"
(
    cd "$empty/n8n"
    echo '{}' >package.json
    npm install --silent --no-audit --no-fund --offline --legacy-peer-deps "$packages"/n8n-nodes-hotline-*.tgz
    NODE_PATH="$root/clients/n8n/node_modules" node -e '
        const { n8n, version } = require("n8n-nodes-hotline/package.json");
        const instances = [...n8n.nodes, ...n8n.credentials].map((file) => new (Object.values(require(`n8n-nodes-hotline/${file}`))[0])());
        console.log("n8n-nodes-hotline", version, instances.map(({ name, description }) => name ?? description.name).join(", "));'
)
ls -1 "$packages"
