#!/bin/sh
# What people type and the files they have: one section per promise of the command line.
# Usage: sh tests/test_last_mile.sh BUILD_DIR, from the source folder.
set -u
LC_ALL=C
export LC_ALL
unset SESAME_ISA SESAME_THREADS NO_COLOR CLICOLOR_FORCE COLUMNS
. tests/finetune_fixture.sh

# ---- tables as people have them ----

# texts LABELS FILE ARGUMENT...: `sesame data` finds 40 texts with the labels neg and pos in a file.
reads() {
    file=$1
    shift
    ok "data $file $*" exits 0 "$sesame" data "$tmp/$file" --task classify --json "$@"
    ok "$file: 40 rows" out_has '"examples": 40'
    ok "$file: 20 of a label" out_has '"value": "pos", "count": 20'
}
awk -F '\t' 'BEGIN { print "Text,Label" } NR <= 40 { print "\"" $1 ", caf\303\251\"," $2 }' "$tmp/rows" >"$tmp/upper.csv"
sed 's/",/";/; s/^Text,/Text;/' "$tmp/upper.csv" >"$tmp/semicolon.csv"
sed 's/",/"\t/; s/^Text,/Text\t/' "$tmp/upper.csv" >"$tmp/tab.csv"
cp "$tmp/upper.csv" "$tmp/comma.tsv"
iconv -f UTF-8 -t UTF-16 "$tmp/tab.csv" >"$tmp/utf16.csv"
iconv -f UTF-8 -t LATIN1 "$tmp/semicolon.csv" >"$tmp/latin1.csv"
awk -F '\t' 'BEGIN { print "[" } NR <= 40 { printf "%s{\"Text\": \"%s\",\n  \"Label\": \"%s\"}", (NR > 1) ? ",\n" : "", $1, $2 }
    END { print "\n]" }' "$tmp/rows" >"$tmp/array.json"
for file in upper.csv semicolon.csv tab.csv comma.tsv utf16.csv array.json; do reads $file; done
reads latin1.csv --encoding latin1
ok "Latin-1 is refused" exits 3 "$sesame" data "$tmp/latin1.csv" --task classify
ok "with the option" err_has '--encoding latin1'
ok "finetune reads an array" exits 0 "$sesame" finetune --task classify --method nb --train "$tmp/array.json" -o "$tmp/array"
ok "predict reads another spelling" exits 0 "$sesame" predict "$tmp/array" "$tmp/semicolon.csv"
counted
