#!/bin/sh
# The units of packaging/systemd: valid, sandboxed, and sockets passed as by systemd. Parts that need tools of systemd are skipped
# if these are not installed. Usage: sh tests/test_systemd.sh BUILD_DIR, from the source folder.
set -u
. tests/counted.sh
unit=packaging/systemd

here=$(pwd)
case $sesame in /*) program=$sesame ;; *) program=$here/$sesame ;; esac
sed "s|@SESAME_BINDIR@|$(dirname "$program")|" $unit/sesame.service.in >"$tmp/sesame.service"
cp $unit/sesame.socket "$tmp"
that 'sesame.service has no variable left' '! grep -q @SESAME "$tmp/sesame.service"'
for line in DynamicUser=yes NoNewPrivileges=yes ProtectSystem=strict PrivateNetwork=yes MemoryDenyWriteExecute=yes; do
    that "sesame.service: $line" 'grep -qx "$line" "$tmp/sesame.service"'
done

if command -v systemd-analyze >/dev/null; then
    (cd "$tmp" && systemd-analyze verify --man=no ./sesame.service ./sesame.socket) >"$tmp/out" 2>&1
    that "systemd-analyze verify: $(cat "$tmp/out")" '[ ! -s "$tmp/out" ]'
    that 'the exposure is at most 1.5' 'systemd-analyze security --offline=yes --threshold=15 "$tmp/sesame.service" >/dev/null 2>&1'
else
    skipped=$((skipped + 2))
fi

ask() { curl -s -m 60 --unix-socket "$tmp/$1.sock" http://localhost/predict -H 'Content-Type: application/json' -d '{"inputs":"plums"}'; }
if command -v systemd-socket-activate >/dev/null && command -v curl >/dev/null; then
    systemd-socket-activate -l "$tmp/a.sock" -l "$tmp/b.sock" "$program" serve -q -m tests/pipelines/bert-label 2>"$tmp/err" &
    server=$!
    tries=0
    while [ ! -S "$tmp/b.sock" ] && [ $tries -lt 100 ]; do
        tries=$((tries + 1))
        sleep 0.1
    done
    that 'the first connection starts the server' 'ask a | grep -q "\"label\""'
    that 'the server answers on the second socket' 'ask b | grep -q "\"label\""'
    kill $server
    wait $server
    code=$?
    that "SIGTERM ends the server: status $code" '[ $code -eq 0 ]'
else
    skipped=$((skipped + 3))
fi
counted
