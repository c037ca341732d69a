#!/bin/sh
# Processor time of the server for a small POST over kept connections: Sesame's HTTP server, libmicrohttpd and libevent
# (Debian: libmicrohttpd-dev, libevent-dev). Then the malformed requests that each of them accepts.
#     make && bench/http/run.sh [ROUNDS]
# Prints the median over the rounds, in microseconds for each request.
set -eu
cd "$(dirname "$0")/../.."
rounds=${1:-5}
tmp=$(mktemp -d)
trap 'rm -r "$tmp"' EXIT
libraries="-lm -lpthread $(for name in z lzma zstd pcre2-8; do ldconfig -p | grep -q "lib$name\.so " && echo "-l$name"; done)"
for program in echo_sesame load; do
    # shellcheck disable=SC2086  # a list
    cc -O2 -std=c11 -Iinclude -Isrc -Itests "bench/http/$program.c" tests/http_client.c build/libsesame.a $libraries -o "$tmp/$program"
done
cc -O2 -std=c11 bench/http/echo_libmicrohttpd.c -lmicrohttpd -o "$tmp/echo_libmicrohttpd"
cc -O2 -std=c11 bench/http/echo_libevent.c -levent -o "$tmp/echo_libevent"

port=18400
round=0
while [ $round -lt "$rounds" ]; do
    round=$((round + 1))
    for name in sesame libmicrohttpd libevent; do
        port=$((port + 1))
        "$tmp/echo_$name" $port &
        server=$!
        sleep 0.3
        for connections in 1 64; do
            echo "$name $connections $("$tmp/load" $port $server $connections 40000)" >>"$tmp/times"
        done
        [ $round -gt 1 ] || "$tmp/load" $port malformed >"$tmp/accepted_$name"
        kill $server
        wait $server 2>/dev/null || true
    done
done
for name in sesame libmicrohttpd libevent; do
    for connections in 1 64; do
        grep "^$name $connections " "$tmp/times" | sort -k 3 -n | awk -v n="$rounds" -v name=$name -v c=$connections '
            NR == int((n + 1) / 2) { printf "%-14s %2d connections: %5.2f us\n", name, c, $3 }'
    done
    sed "s/^/    accepts: /" "$tmp/accepted_$name"
done
