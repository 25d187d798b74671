#!/usr/bin/env bash
# Makes a Debian package of a binary, installs it in a bare Debian, starts, upgrades, removes and purges it; as root:
# `tests/packaging/deb.sh BINARY`. There is no systemd: the command of the unit is run as the unit's user, and a stand-in for
# systemd's notify socket records what the service reports.
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
# The same contents with a higher version, which is all that an upgrade needs.
next="$(mktemp -d)"
dpkg-deb --raw-extract "$root/root/first.deb" "$next"
sed -i 's/^Version: .*/&+next/' "$next/DEBIAN/control"
dpkg-deb --build --root-owner-group -Zgzip -z1 "$next" "$root/root/second.deb" >/dev/null
rm -r "${next:?}"

say "installation"
apt install /root/first.deb
[ "$(inside stat -c '%U %G %a' /etc/hotline/hotline.toml)" = "root hotline 640" ] || fail "/etc/hotline/hotline.toml is not root:hotline with mode 640"
[ "$(inside stat -c '%U %G %a' /var/lib/hotline)" = "hotline hotline 700" ] || fail "/var/lib/hotline is not hotline:hotline with mode 700"
[ -e "$root/usr/share/man/man1/hotline-serve.1.gz" ] || fail "no manual page"
[ ! -e "$root/etc/systemd/system/multi-user.target.wants/hotline.service" ] || fail "the unit is enabled, although nobody has configured the service yet"
inside hotline --version

# Starts the service and the stand-in for systemd, which writes each message to a file.
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
    within 5 test -S "$root/run/notify" || fail "the stand-in for systemd does not listen"
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
# A watchdog message after the signal: the reload is over, and the service works.
: >"$target/notified"
kill -HUP "$service"
within 30 grep -q '^WATCHDOG=1' "$target/notified" || fail "no WATCHDOG=1: $(cat "$target/notified")"
contacts >/dev/null || fail "the service does not answer after a reload: $(cat "$target/service.log")"

say "upgrade"
stop
apt install /root/second.deb
grep -q "^listen = \"127.0.0.1:$port\"" "$root/etc/hotline/hotline.toml" || fail "the upgrade has replaced /etc/hotline/hotline.toml"
start
contacts | grep -q Maria || fail "the upgrade has lost a contact"
stop

say "removal and purge"
apt remove hotline
[ -e "$root/etc/hotline/hotline.toml" ] || fail "the removal has deleted /etc/hotline/hotline.toml"
apt install /root/second.deb
apt purge hotline
if [ -e "$root/etc/hotline" ] || [ -e "$root/etc/default/hotline" ]; then
    fail "the purge has kept the configuration"
fi
[ -d "$root/var/lib/hotline/journal" ] || fail "the purge has deleted the data folder"
echo "installed, started, upgraded and purged: all as expected"
