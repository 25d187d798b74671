# Sourced by the scripts beside it: builds the clients with the tools that their packages name.

target="$(mkdir -p "${CARGO_TARGET_DIR:-target}" && cd "${CARGO_TARGET_DIR:-target}" && pwd)"
# Python's tools have an environment of their own.
python_tools="${CLIENTS_PYTHON_TOOLS:-$target/clients/python-$(sha256sum clients/python/requirements-dev.txt | cut -c-12)}"

# What a package of Node names, if it is not installed.
install_node() {
    if [ ! node_modules/.package-lock.json -nt package-lock.json ]; then
        npm ci --ignore-scripts --no-audit --no-fund
        touch node_modules/.package-lock.json
    fi
}

build_typescript() {
    (
        cd clients/typescript
        install_node
        npx tsc -p tsconfig.json
        rm -rf dist
        npx tsc -p tsconfig.build.json
    )
}

build_n8n_node() {
    (
        cd clients/n8n
        install_node
        rm -rf dist
        npm run --silent build
    )
}

# Sets PATH to Python's tools, and PYTHONPATH to the client.
prepare_python() {
    if [ ! -x "$python_tools/bin/mypy" ]; then
        rm -rf "$python_tools"
        python3 -m venv "$python_tools"
        "$python_tools/bin/pip" install --quiet --disable-pip-version-check -r clients/python/requirements-dev.txt
    fi
    export PATH="$python_tools/bin:$PATH" PYTHONPATH="$PWD/clients/python/src" PYTHONDONTWRITEBYTECODE=1
}
