# A bare Debian for scripts that are tests: `. tests/packaging/bare.sh`, then `open_root`. It is made once, and copied.
# shellcheck shell=bash

suite=bookworm
# How long a start may take, for the scripts that begin with this.
# shellcheck disable=SC2034
seconds_max=$((60 * ${HOTLINE_TEST_PATIENCE:-1}))
target="$(mkdir -p "${CARGO_TARGET_DIR:-target}/packaging" && cd "${CARGO_TARGET_DIR:-target}/packaging" && pwd)"
root="$target/root"
service=
manager=
export PATH="$PATH:/usr/sbin:/sbin"

if [ "$(id -u)" -ne 0 ]; then
    echo "NOT RUN: a bare Debian is made by root" >&2
    exit 0
fi

say() { echo "== $*"; }
fail() {
    echo "FAILED: $*" >&2
    exit 1
}

# Whether a command succeeds within so many seconds.
within() {
    local tries=$(($1 * 10))
    shift
    until "$@"; do
        tries=$((tries - 1))
        [ "$tries" -gt 0 ] || return 1
        sleep 0.1
    done
}

# A Debian with PostgreSQL.
make_base() {
    local base="$1"
    say "a bare Debian ($suite)"
    rm -rf "$base"
    debootstrap --variant=minbase "$suite" "$base" "${DEBIAN_MIRROR:-http://deb.debian.org/debian}" >"$target/debootstrap.log"
    # No service starts by being installed.
    printf '#!/bin/sh\nexit 101\n' >"$base/usr/sbin/policy-rc.d"
    chmod 755 "$base/usr/sbin/policy-rc.d"
    cp /etc/resolv.conf "$base/etc/resolv.conf"
    chroot "$base" apt-get update >"$target/apt.log"
    DEBIAN_FRONTEND=noninteractive chroot "$base" apt-get install -y --no-install-recommends postgresql curl \
        >>"$target/apt.log" 2>&1
    touch "$base/made"
}

cleanup() {
    [ -z "$service" ] || kill "$service" 2>/dev/null || true
    [ -z "$manager" ] || kill "$manager" 2>/dev/null || true
    wait 2>/dev/null || true
    # What is mounted is the machine's own: nothing is removed below it.
    for mounted in proc dev; do
        if mountpoint -q "$root/$mounted"; then
            umount "$root/$mounted" || return
        fi
    done
    rm -rf --one-file-system "${root:?}"
}

# A copy of it, which is removed at the end.
open_root() {
    local base="$target/$suite"
    [ -e "$base/made" ] || make_base "$base"
    if [ -e "$root" ]; then
        cleanup
    fi
    trap cleanup EXIT
    cp -a "$base" "$root"
    mount -t proc proc "$root/proc"
    mount --bind /dev "$root/dev"
}

# With none of the variables of the test.
inside() { chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive "$@"; }
apt() { inside apt-get -y --no-install-recommends "$@" >>"$target/apt.log" 2>&1; }
# Runs a command as the service's user, as an administrator does.
hotline() { inside runuser -u hotline -- hotline --config /etc/hotline/hotline.toml "$@"; }

