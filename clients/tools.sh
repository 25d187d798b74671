# Sourced by the scripts beside it: builds the clients with the tools that their packages name.

build_typescript() {
    (
        cd clients/typescript
        if [ node_modules/.package-lock.json -ot package-lock.json ]; then
            npm ci --ignore-scripts --no-audit --no-fund
            touch node_modules/.package-lock.json
        fi
        npx tsc -p tsconfig.json
        rm -rf dist
        npx tsc -p tsconfig.build.json
    )
}
