#!/usr/bin/env bash
# Builds the packages of both clients, checks them as registries and users see them, and installs each where nothing
# else is: `make clients-package`. They are in target/clients/packages.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. clients/tools.sh

packages="$target/clients/packages"
empty="$(mktemp -d)"
trap 'rm -rf "$empty"' EXIT
rm -rf "$packages"
mkdir -p "$packages"

build_typescript
(cd clients/typescript && npx publint --strict && npm pack --silent --pack-destination "$packages")
archive="$(echo "$packages"/*.tgz)"
# Only ESM: `require` of it needs Node 22.
(cd clients/typescript && npx attw "$archive" --profile esm-only)
(
    cd "$empty"
    echo '{"type": "module"}' >package.json
    npm install --silent --no-audit --no-fund --offline "$archive"
    node -e 'import("@hotline/client").then(({ OPERATIONS, VERSION }) => console.log("@hotline/client", VERSION, Object.keys(OPERATIONS).length, "operations"))'
    node -e 'import("@hotline/client/node").then(({ fromPath }) => { if (typeof fromPath !== "function") process.exit(1); })'
)

prepare_python
python3 -m build --quiet --no-isolation --outdir "$packages" clients/python
twine check --strict "$packages"/*.whl "$packages"/*.tar.gz
python3 -m venv --system-site-packages "$empty/venv"
"$empty/venv/bin/pip" install --quiet --disable-pip-version-check "$packages"/*.whl
(cd "$empty" && PYTHONPATH='' venv/bin/python -c 'import hotline; print("hotline-client", hotline.VERSION, len(hotline.OPERATIONS), "operations")')
ls -1 "$packages"
