#!/usr/bin/env bash
# Runs the ten commands of docs/operate/README.md in a bare Debian, as root: `tests/packaging/ten_commands.sh BINARY`, with Caddy and
# with nginx; or with the one that a second argument names. In the end a visitor of the website writes in the widget, over TLS, and
# the company reads it. Stand-ins: systemd, which does not run here, and the authority that signs certificates, which cannot be
# reached, with the `certbot` that asks it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

# shellcheck source=tests/packaging/bare.sh
. tests/packaging/bare.sh
name=support.example.com
shop=https://shop.example

# The commands as they are written below a mark.
block() { sed -n "/^<!-- $1: -->\$/,/^<!-- to here -->\$/p" docs/operate/README.md | sed '/^<!--/d; /^```/d'; }
ten_commands() { block 'ten commands'; }
with_nginx() { block 'with nginx, in the place of caddy and of 6, 7'; }
# Those of a proxy, in their order.
written() {
    if [ "$proxy" = caddy ]; then
        ten_commands
        return
    fi
    ten_commands | sed '/^# 6, 7/,$d; s/ caddy$//; s/ and a proxy$//'
    with_nginx
    ten_commands | sed -n '/^# 8/,$p'
}
installation() { written | sed '/^# 2/,$d'; }
others() { written | sed -n '/^# 2/,$p'; }
# What signs the certificate of the site.
authority() {
    case "$proxy" in
    caddy) echo /var/lib/caddy/caddy/pki/authorities/local/root.crt ;;
    nginx) echo "/etc/letsencrypt/live/$name/fullchain.pem" ;;
    esac
}

stand_in() {
    cat >"$root/usr/local/bin/systemctl" <<'SYSTEMCTL'
#!/bin/sh
set -e
case "$*" in
"enable --now hotline")
    command="$(sed -n 's/^ExecStart=//p' /usr/lib/systemd/system/hotline.service)"
    cd /var/lib/hotline
    # shellcheck disable=SC2086
    setsid runuser -u hotline -- $command >/var/log/hotline.log 2>&1 &
    for _ in $(seq 1200); do
        if curl -fs -o /dev/null http://127.0.0.1:8080/health/ready; then exit; fi
        sleep 0.1
    done
    cat /var/log/hotline.log >&2
    exit 1
    ;;
"reload caddy")
    { printf '{\n\tlocal_certs\n\tskip_install_trust\n}\n'; cat /etc/caddy/Caddyfile; } >/run/Caddyfile
    XDG_DATA_HOME=/var/lib/caddy XDG_CONFIG_HOME=/var/lib/caddy setsid caddy start --config /run/Caddyfile --adapter caddyfile \
        >/var/log/caddy.log 2>&1
    ;;
"reload nginx")
    # The site that Debian's package has at port 80 stays, as on a machine where it is not removed.
    setsid nginx >/var/log/nginx.log 2>&1
    ;;
*)
    echo "systemctl $*: unknown here" >&2
    exit 1
    ;;
esac
SYSTEMCTL
    cat >"$root/usr/local/bin/certbot" <<'CERTBOT'
#!/bin/sh
set -e
# Without it, nginx keeps the certificate that expires.
case "$*" in
*"--deploy-hook systemctl reload nginx"*) ;;
*) echo "certbot $*: nothing reloads nginx after a renewal" >&2; exit 1 ;;
esac
for word; do domain="$word"; done
mkdir -p "/etc/letsencrypt/live/$domain"
cd "/etc/letsencrypt/live/$domain"
openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj "/CN=$domain" -addext "subjectAltName=DNS:$domain" \
    -keyout privkey.pem -out fullchain.pem 2>/var/log/certbot.log
CERTBOT
    chmod 755 "$root/usr/local/bin/systemctl" "$root/usr/local/bin/certbot"
}

# A request to the site, as everybody makes it.
site() {
    local path="$1"
    shift
    inside curl -fsS --cacert "$(authority)" -H 'Content-Type: application/json' \
        "https://$name$path" "$@"
}
text_of() { sed "s/.*\"$1\":\"\([^\"]*\)\".*/\1/"; }

# In a network of its own, which ends with all that it started.
alone() {
    ip link set lo up
    mount -t proc proc "$root/proc"
    echo "127.0.0.1 localhost $name $(uname -n)" >"$root/etc/hosts"
    inside pg_ctlcluster 15 main start
    say "the other commands"
    # Nothing is downloaded here: what apt-get is asked for was installed before.
    inside sh -exc "$(others)" | tee "$target/printed"

    say "a visitor writes, and the company reads it"
    local channel password token key
    channel="$(grep -o 'ch_[A-Za-z0-9]*' "$target/printed" | head -n 1)"
    password="$(sed -n 's/^ *password:* *//Ip' "$target/printed" | head -n 1)"
    within 30 site /health/ready -o /dev/null || fail "the site is not served: $(cat "$root/var/log/$proxy.log")"
    site "/webchat/$channel/widget.js" | grep -q /webchat/ || fail "no widget"
    token="$(site "/webchat/$channel/sessions" -H "Origin: $shop" -d '{}' | text_of token)"
    site "/webchat/$channel/messages" -H "Origin: $shop" -H "Authorization: Bearer $token" -d '{"body":"Is anybody there?"}' \
        >/dev/null
    key="$(hotline token create test --company 1 --all --json | text_of key)"
    within 10 site /api/v1/messages -H "Authorization: Bearer $key" -o /dev/null || fail "the token is not known"
    site /api/v1/messages -H "Authorization: Bearer $key" | grep -q 'Is anybody there?' || fail "the message is not there"
    site /panel/api/v1/session -H "Origin: https://$name" -d "{\"email\":\"you@example.com\",\"password\":\"$password\"}" \
        | grep -q '"state":"open"' || fail "the administrator cannot sign in"
    echo "from a bare Debian to a message on a widget behind TLS: all as written"
}

if [ "${1:-}" = --alone ]; then
    proxy="$2"
    alone
    exit
fi
binary="$(realpath "$1")"
[ "$(ten_commands | grep -c '^sudo')" -eq 10 ] || fail "docs/operate/README.md has not ten commands"
[ "$(with_nginx | grep -c '^sudo')" -eq 4 ] || fail "docs/operate/README.md has not the commands of nginx"
say "the package"
DEB_OPTIONS=--fast tools/deb "$binary" >/dev/null
for proxy in ${2:-caddy nginx}; do
    say "with $proxy"
    open_root
    apt install sudo
    stand_in
    cp target/deb/*.deb "$root/root/"
    say "the first command"
    inside sh -exc "cd /root; $(installation)" >>"$target/apt.log" 2>&1 || fail "$(tail "$target/apt.log")"
    if [ "$proxy" = nginx ]; then
        apt install nginx certbot openssl
    fi
    unshare --net --pid --fork --kill-child --mount bash tests/packaging/ten_commands.sh --alone "$proxy"
    cleanup
done
