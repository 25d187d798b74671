#!/usr/bin/env bash
# Deletes the first events of the service that clients/service.sh runs, as the end of their retention does.
set -euo pipefail

psql="$(command -v psql || compgen -G '/usr/lib/postgresql/*/bin/psql' | tail -n 1)"
folder="$HOTLINE_DATA_DIR/postgres"
statement="delete from events where last_id <= $(($1))"
command=("$psql" -q -v ON_ERROR_STOP=1 -h "$folder/socket" -U hotline -d hotline -c "$statement")
owner="$(stat -c %U "$folder")"
if [ "$owner" = "$(id -un)" ]; then
    "${command[@]}"
else
    # The private PostgreSQL admits only the user that it runs as.
    runuser -u "$owner" -- "${command[@]}"
fi
