#!/bin/sh
# `sesame clusters`: the files of wcluster, equal bytes on any number of threads, drawings, bad input.
# bench/peers/clusters.sh compares more settings.
set -u
. tests/counted.sh

awk 'BEGIN { x = 1; for (i = 0; i < 20000; i++) { x = x * 16807 % 2147483647; y = int(x % 1000 / 100) * int(x / 1000 % 30) + (p * 7) % 13
    printf "w%d%s", y, x % 17 == 0 ? "\n" : x % 41 == 0 ? "\t" : " "; p = y } printf "end" }' >"$tmp/corpus"
that 'the corpus is the one of the sums' '[ "$(cksum <"$tmp/corpus")" = "4083190772 83037" ]'

cluster() { rm -f "$tmp/paths" && "$sesame" clusters -q --output "$tmp/paths" "$@" "$tmp/corpus" >"$tmp/out" 2>"$tmp/err"; }
writes() { # writes SUM OPTION...: the sum of the file of wcluster
    sum=$1
    shift
    if cluster "$@" && [ "$(cksum <"$tmp/paths")" = "$sum" ]; then pass; else fail "$*"; fi
}
writes '1348262228 2407' -c 1 --min-count 1
writes '1135517046 2682' -c 2 --min-count 1
writes '2719788983 2815' -c 3 --min-count 1
writes '2687553969 3008' -c 5 --min-count 1
writes '2973309174 3235' -c 8 --min-count 2
writes '1470355816 3525' -c 13 --min-count 1
writes '631599815 3629' -c 20 --min-count 3
writes '3725291959 3921' -c 30 --min-count 1
writes '2713894539 3888' -c 40 --min-count 5
writes '2327902913 4161' -c 60 --min-count 1
writes '4044614887 4299' -c 80 --min-count 2
writes '3304297551 4525' -c 100 --min-count 1
writes '3266219373 4700' -c 150 --min-count 1
writes '391643202 4879' -c 200 --min-count 1
writes '405427695 5153' -c 500 --min-count 1
for threads in 2 3 8; do writes '2327902913 4161' -c 60 --threads $threads; done

# Nearly every word is rare: many merges have exactly the same value. The files of wcluster, again.
cp "$tmp/corpus" "$tmp/first"
awk 'BEGIN { x = 1; for (i = 0; i < 3000; i++) { x = x * 16807 % 2147483647; y = x % 4 ? int(x / 8 % 40) * int(x / 320 % 40) : x % 1999
    printf "w%d%s", y, x % 17 == 0 ? "\n" : " " } printf "end" }' >"$tmp/corpus"
that 'the text of rare words is the one of the sums' '[ "$(cksum <"$tmp/corpus")" = "978374106 14777" ]'
writes '2416862034 12595' -c 30 --min-count 1
writes '2667028810 13909' -c 80 --min-count 1
writes '1107688008 14433' -c 120 --min-count 1
writes '1208366322 15155' -c 200 --min-count 1
writes '4019954613 7882' -c 60 --min-count 2
for threads in 2 8; do writes '1107688008 14433' -c 120 --threads $threads; done
cp "$tmp/first" "$tmp/corpus"

# Words that the limit drops are between the ages of the others and of the clusters.
for seed in 1 2 3 4 5 6 7 8 9 10 11 12; do
    awk -v seed=$seed 'BEGIN { srand(seed); for (i = 0; i < 30; i++) printf "w%d ", int(9 * rand() * rand()); print "" }' >"$tmp/few"
    that "a limit, text $seed" '"$sesame" clusters -q -t 1 -c 3 --max-vocab 3 --overwrite --output "$tmp/paths" "$tmp/few" && [ "$(wc -l <"$tmp/paths")" -eq 3 ]'
done
printf 'w0 w1 w2 w1 w1 w7 w7 w7 w7 w6 w7 w1 w6 w3 w3 w7 w6 w2 w1 w7 w1 w1 w4 w2 w7 w1 w5\n' >"$tmp/few"
that 'a limit, another text' '"$sesame" clusters -q -t 1 -c 3 --max-vocab 3 --overwrite --output "$tmp/paths" "$tmp/few" && [ "$(cut -f2 "$tmp/paths" | sort | tr "\n" " ")" = "w1 w6 w7 " ]'
that 'a vocabulary limit' 'cluster -c 4 --max-vocab 10 && [ "$(wc -l <"$tmp/paths")" -eq 10 ]'
that 'fewer words than clusters' 'cluster -c 1000 --max-vocab 10 && [ "$(sort -u "$tmp/paths" | cut -f1 | sort -u | wc -l)" -eq 10 ]'
that 'a table' 'cluster -c 5 && grep -q "most frequent" "$tmp/out" && [ "$(wc -l <"$tmp/out")" -eq 6 ]'
that 'JSON' 'cluster -c 5 --json && grep -q "\"mutual_information\": 0\.[0-9]*, \"clusters\": \[{\"path\": \"0" "$tmp/out"'
that 'a tree' 'cluster -c 5 --tree && [ "$(grep -c -- "[-─]" "$tmp/out")" -eq 5 ]'
that 'the output is not overwritten' '! "$sesame" clusters -o "$tmp/paths" "$tmp/corpus" 2>"$tmp/err" && grep -q overwrite "$tmp/err"'

refuses() { # refuses TEXT OPTION...: the command fails with TEXT and writes nothing
    text=$1
    shift
    if cluster "$@"; then fail "accepted: $*"; else that "$*" 'grep -qF -- "$text" "$tmp/err" && [ ! -e "$tmp/paths" ]'; fi
}
refuses '0 is out of range' -c 0
refuses '--tree has no effect with --json' --tree --json
refuses 'none of 275 words occurs 100000 times' --min-count 100000
that 'a full disk' '! "$sesame" clusters -q -c 2 "$tmp/corpus" >/dev/full 2>"$tmp/err"'
printf 'a b c d\na b \000\n' >"$tmp/corpus"
refuses 'line 2: byte 5: NUL'
printf 'a b c d\na \377\376 b\n' >"$tmp/corpus"
refuses 'line 2: byte 3: invalid UTF-8'
echo one >"$tmp/corpus"
that 'one word' 'cluster -c 3 && [ "$(cat "$tmp/paths")" = "$(printf "\tone\t1")" ]'
: >"$tmp/corpus"
refuses 'no words'
rm "$tmp/corpus"
refuses 'corpus'
head -c 10000000 /dev/zero | tr '\0' x >"$tmp/corpus" # a word of 10 MB
that 'a long word' 'echo " a b a b" >>"$tmp/corpus" && cluster -c 2 && [ "$(wc -l <"$tmp/paths")" -eq 2 ]'
counted
