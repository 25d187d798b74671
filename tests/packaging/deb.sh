#!/usr/bin/env bash
# Installs the Debian package of a binary in a bare Debian, as root: `tests/packaging/deb.sh BINARY`. The service starts as its user
# with the command of the unit and reports to a stand-in of systemd's socket; it is upgraded, removed and purged.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

binary="$(realpath "$1")"
# shellcheck source=tests/packaging/bare.sh
. tests/packaging/bare.sh
open_root

say "the packages: of this version, and of the next"
DEB_OPTIONS=--fast tools/deb "$binary" >/dev/null
lintian --allow-root --fail-on error,warning target/deb/*.deb
cp target/deb/*.deb "$root/root/first.deb"
# The same with another version: what differs does not matter here.
next="$(mktemp -d)"
dpkg-deb --raw-extract "$root/root/first.deb" "$next"
sed -i 's/^Version: .*/&+next/' "$next/DEBIAN/control"
dpkg-deb --build --root-owner-group -Zgzip -z1 "$next" "$root/root/second.deb" >/dev/null
rm -r "${next:?}"

say "installation"
apt install /root/first.deb
[ "$(inside stat -c '%U %G %a' /etc/hotline/hotline.toml)" = "root hotline 640" ] || fail "the configuration is not the group's"
[ "$(inside stat -c '%U %G %a' /var/lib/hotline)" = "hotline hotline 700" ] || fail "the data folder is not the user's"
[ -e "$root/usr/share/man/man1/hotline-serve.1.gz" ] || fail "no manual page"
[ ! -e "$root/etc/systemd/system/multi-user.target.wants/hotline.service" ] || fail "it is enabled before it is configured"
inside hotline --version

# The stand-in of systemd: notes what it is sent.
start() {
    rm -f "$root/run/notify"
    : >"$target/notified"
    python3 - "$root/run/notify" "$target/notified" <<'PYTHON' &
import os, socket, sys
end = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
end.bind(sys.argv[1])
os.chmod(sys.argv[1], 0o777)
while True:
    text = end.recv(4096).decode()
    with open(sys.argv[2], "a") as file:
        print(text, file=file, flush=True)
PYTHON
    manager=$!
    within 5 test -S "$root/run/notify" || fail "the stand-in of systemd does not listen"
    local command
    command="$(sed -n 's/^ExecStart=//p' "$root/lib/systemd/system/hotline.service" "$root/usr/lib/systemd/system/hotline.service" \
        2>/dev/null | head -n 1)"
    # shellcheck disable=SC2086
    chroot --userspec=hotline:hotline "$root" env -i PATH=/usr/bin:/bin NOTIFY_SOCKET=/run/notify WATCHDOG_USEC=10000000 \
        $command >"$target/service.log" 2>&1 &
    service=$!
    within "$seconds_max" grep -q '^READY=1' "$target/notified" \
        || fail "no READY=1: $(cat "$target/notified" "$target/service.log")"
}
stop() {
    kill -TERM "$service"
    local status=0
    wait "$service" || status=$?
    service=
    kill "$manager" && { wait "$manager" || true; }
    manager=
    [ "$status" -eq 0 ] || fail "the stop was not clean ($status): $(cat "$target/service.log")"
    grep -q '^STOPPING=1' "$target/notified" || fail "no STOPPING=1: $(cat "$target/notified")"
}
contacts() { curl -fsS -H "Authorization: Bearer $key" "http://127.0.0.1:$port/api/v1/contacts" "$@"; }

say "start as the service's user, with a conversation"
port=18093
sed -i "s/^#listen = .*/listen = \"127.0.0.1:$port\"/" "$root/etc/hotline/hotline.toml"
start
company="$(hotline company create Acme --json | sed 's/.*"id":\([0-9]*\).*/\1/')"
key="$(hotline token create first --company "$company" --all --json | sed 's/.*"key":"\([^"]*\)".*/\1/')"
within "$seconds_max" contacts >/dev/null 2>&1 || fail "the company is not served"
contacts -H 'Content-Type: application/json' -d '{"name":"Maria"}' >/dev/null
kill -HUP "$service"
# Later than what a reload does.
within 30 grep -q '^WATCHDOG=1' "$target/notified" || fail "no WATCHDOG=1: $(cat "$target/notified")"
contacts >/dev/null || fail "a reload ends it: $(cat "$target/service.log")"

say "upgrade"
stop
apt install /root/second.deb
grep -q "^listen = \"127.0.0.1:$port\"" "$root/etc/hotline/hotline.toml" || fail "the upgrade has replaced the configuration"
start
contacts | grep -q Maria || fail "the upgrade has lost a contact"
stop

say "removal and purge"
apt remove hotline
[ -e "$root/etc/hotline/hotline.toml" ] || fail "a removal deletes the configuration"
apt install /root/second.deb
apt purge hotline
if [ -e "$root/etc/hotline" ] || [ -e "$root/etc/default/hotline" ]; then
    fail "a purge keeps the configuration"
fi
[ -d "$root/var/lib/hotline/journal" ] || fail "a purge deletes conversations"
echo "installed, started, upgraded and purged: all as expected"
