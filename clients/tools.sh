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

# The page of the example of a site, with the types as `npm install` puts them: `check_page FOLDER`.
check_page() {
    cp clients/examples/site/page.js "$1"
    echo '{"type": "module"}' >"$1/package.json"
    clients/typescript/node_modules/.bin/tsc --noEmit --allowJs --checkJs --strict --target es2022 --module nodenext \
        --lib es2022,dom,dom.iterable "$1/page.js"
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
