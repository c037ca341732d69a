#!/bin/sh
# Compares `sesame clusters` with wcluster (Liang 2005), byte for byte, and prints the CPU seconds of both.
# Usage: bench/peers/clusters.sh SESAME WCLUSTER CORPUS [C:MIN_COUNT...]
set -u
sesame=$1 wcluster=$2 corpus=$3
shift 3
[ $# -gt 0 ] || set -- 2:5 5:5 10:5 20:5 50:10 50:20 100:30 100:50 200:50 500:100
tmp=$(mktemp -d) && trap 'rm -rf "$tmp"' EXIT
cp "$corpus" "$tmp/text"
same=0 different=0
cpu() { # cpu COMMAND...: its user seconds on standard output
    { TIMEFORMAT=%U; bash -c 'TIMEFORMAT=%U; time "$@" >/dev/null 2>&1' cpu "$@"; } 2>&1
}
for setting; do
    c=${setting%:*} least=${setting#*:}
    theirs=$(cpu "$wcluster" --text "$tmp/text" --c "$c" --min-occur "$least" --rand 1 --threads 1 --output_dir "$tmp/theirs")
    ours=$(cpu "$sesame" clusters -q -t 1 -c "$c" --min-count "$least" --overwrite --output "$tmp/ours" "$tmp/text")
    if cmp -s "$tmp/theirs/paths" "$tmp/ours"; then same=$((same + 1)) word=same; else different=$((different + 1)) word=different; fi
    echo "C $c, at least $least times: $word; wcluster $theirs s, sesame $ours s"
done
echo "$same same, $different different"
