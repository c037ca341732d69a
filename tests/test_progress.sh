#!/bin/sh
# Progress lines: percentage, bar and time left on a terminal; no control characters in pipes and logs.
# Usage: test_progress.sh BUILD_DIR, from the source folder.
. tests/finetune_fixture.sh
control=$(printf '[\033\r]')

awk 'BEGIN { for (i = 0; i < 60000; i++) printf "the film was %s . it was not %s\n%s", i % 2 ? "good" : "bad", i % 3 ? "bad" : "good",
    i % 5 ? "" : "\n" }' >"$tmp/text.txt"
awk 'BEGIN { print "sentence,label"; for (i = 0; i < 20000; i++) printf "the film was %s,%s\n", i % 2 ? "good" : "bad", i % 2 ? "pos" : "neg" }' \
    >"$tmp/rows.csv"
train="finetune $small --task classify --train $tmp/train.tsv --eval $tmp/rows.csv --epochs 6"

# On a terminal.
if script -qec true /dev/null </dev/null >/dev/null 2>&1; then
    tty() # columns, then a command line of sesame
    {
        LC_ALL=$locale TERM=xterm script -qec "stty cols $1; '$sesame' $2" /dev/null </dev/null | tr '\r' '\n' >"$tmp/out"
    }
    widest() { grep '%' "$tmp/out" | sed "s/$(printf '\033')\[[0-9;]*[mK]//g" | LC_ALL=C.UTF-8 wc -L; }
    locale=C.UTF-8
    tty 100 "$train -o $tmp/one"
    ok "training" out_has '^.*[0-9]*% \[[^] ].*\] [0-9]*/60  loss [0-9.]*  [0-9.hms]* left'
    ok "an evaluation" out_has 'evaluating *[0-9]*% \['
    tty 60 "corpus build --tokenizer $tmp/vocab.txt --keep-duplicates -t 1 -o $tmp/c.ids $tmp/text.txt"
    ok "a corpus" out_has 'reading *[0-9]*% \[.*\]  [0-9.hms]* left'
    tty 100 "text-classification -m $tmp/one -t 1 --column sentence -f $tmp/rows.csv --keep csv --to $tmp/labels.csv"
    ok "rows of a table" out_has 'texts *[0-9]*% \[.*\]  [0-9.hms]* left'
    tty 100 "eval $tmp/one $tmp/rows.csv --task classify -t 1"
    ok "eval" out_has 'sequences *[0-9]*% \['
    locale=C
    tty 48 "$train -o $tmp/narrow"
    ok "a narrow terminal without Unicode" out_has '[0-9]*% \[#* *\] [0-9]*/60'
    ok "fits" test "$(widest)" -le 48
else
    echo "skipped: script(1) gives no terminal"
fi

# In a pipe.
for run in "$train -o $tmp/pipe" "corpus build --tokenizer $tmp/vocab.txt --keep-duplicates -o $tmp/d.ids $tmp/text.txt" \
    "eval $tmp/pipe $tmp/rows.csv --task classify" \
    "text-classification -m $tmp/pipe --column sentence -f $tmp/rows.csv --keep csv --to $tmp/pipe.csv"; do
    # shellcheck disable=SC2086  # words of a command
    ok "$run" exits 0 "$sesame" $run
    ok "no control characters" sh -c "! cat '$tmp/out' '$tmp/err' | grep -q '$control'"
    ok "no bar" sh -c "! cat '$tmp/out' '$tmp/err' | grep -q '% \['"
done

echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
