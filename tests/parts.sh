#!/usr/bin/env bash
# Runs targets of the Makefile one after the other, whatever becomes of each, and ends with what each took and one status.
# `tests/parts.sh test test-rust test-browser` calls `make test-rust`, then `make test-browser`; `test` is what the whole is called.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit

whole="$1"
shift
status=0
table=()
for part in "$@"; do
    echo "== $part =="
    began=$SECONDS
    "${MAKE:-make}" --no-print-directory "$part"
    ended=$?
    outcome=passed
    if [ "$ended" -ne 0 ]; then
        outcome="FAILED ($ended)"
        status=1
    fi
    table+=("$(printf '%-20s %5d s  %s' "$part" $((SECONDS - began)) "$outcome")")
done
echo "== make $whole =="
printf '%s\n' "${table[@]}"
printf '%-20s %5d s  %s\n' "all of it" "$SECONDS" "$([ "$status" -eq 0 ] && echo passed || echo FAILED)"
exit "$status"
