#!/bin/sh
# Supervised fastText: `sesame vectors train --exact fasttext --model supervised` and `vectors quantize` write the bytes of
# fastText 0.9.3 (gcc -O2 -ffp-contract=off, one thread), which has these sums for the same text; bench/peers/fasttext_models.py
# compares more. fastText leaves rows of small matrices uninitialized, hence the wide ones. `vectors supervised` has the same bits for any number of threads and can be interrupted.
set -u
. tests/counted.sh

# About 600 lines with one or two of 5 labels, a tab, a carriage return, an empty line, no end of the last line.
awk 'BEGIN { x = 1; for (i = 0; i < 600; i++) { x = x * 16807 % 2147483647; c = x % 5; printf "__label__%c", 97 + c
    if (x % 13 == 0) printf " __label__%c", 97 + (c + 1) % 5
    for (k = 0; k < 8; k++) { x = x * 16807 % 2147483647; y = x % 3 ? int(x / 1000 % 90) : c * 7 + int(x / 1000 % 7)
        printf "%sw%d%s", x % 41 == 0 ? "\t" : " ", y, x % 23 == 0 ? "\303\251" : "" }
    printf "%s", i == 599 ? "" : x % 31 == 0 ? "\r\n\n" : "\n" } }' >"$tmp/corpus"
that 'the corpus is the one of the sums' '[ "$(cksum <"$tmp/corpus")" = "2242259948 25953" ]'
{ echo '40 300' && awk 'BEGIN { for (i = 0; i < 40; i++) { printf "w%d", i * 3; for (k = 0; k < 300; k++) printf " %.3f", (i * 31 + k * 17) % 200 / 100 - 1; print "" } }'; } >"$tmp/vec"

train() { rm -f "$tmp/out" && "$sesame" vectors train -q --exact fasttext --model supervised --binary "$@" --output "$tmp/out" "$tmp/corpus" 2>"$tmp/err"; }
writes() { # writes SUM OPTION...
    sum=$1
    shift
    if train "$@" && [ "$(cksum <"$tmp/out")" = "$sum" ]; then pass; else fail "$*"; fi
}
writes '2521476548 168440' --dim 250
writes '251010614 172424' --dim 256 --loss ova
writes '3081348315 181720' --dim 270 --loss ns
writes '2742090423 168440' --dim 250 --loss hs
writes '3889415691 236368' --dim 27 --wordNgrams 2 --bucket 2000
writes '1174496965 217728' --dim 17 --wordNgrams 3 --bucket 3000 --loss hs --minn 2 --maxn 4
writes '2869560640 227856' --dim 19 --minn 3 --maxn 6 --bucket 2800 --loss ns --neg 2
writes '552615870 205257' --dim 600 --minCount 30 --minCountLabel 120 --epoch 2
writes '765458542 303596' --dim 15 --minCount 40 --minn 2 --maxn 3 --bucket 4999 --wordNgrams 2 --loss ova
writes '2537973228 223552' --dim 333 --seed 17 --lr 0.5 --lrUpdateRate 1
writes '755359431 175080' --dim 260 --seed -3 --lr 0.25 --epoch 1
writes '3285966269 201640' --dim 300 --label __label__b
writes '3009508762 813776' --dim 300 --pretrainedVectors "$tmp/vec" --bucket 500 --wordNgrams 2 --epoch 2
train --dim 20 --wordNgrams 2 --bucket 2000 --epoch 3 && mv "$tmp/out" "$tmp/model.bin"
compresses() { # compresses SUM OPTION...
    sum=$1
    shift
    if "$sesame" vectors quantize -q "$tmp/model.bin" --output "$tmp/out" --overwrite "$@" 2>"$tmp/err" && [ "$(cksum <"$tmp/out")" = "$sum" ]; then pass; else fail "quantize $*"; fi
}
compresses '283153935 44951'
compresses '2841959964 48152' --qnorm
compresses '2752410016 34146' --dsub 4
compresses '3701205721 34653' --cutoff 700
compresses '3386979121 27893' --cutoff 300 --qnorm --dsub 3
compresses '415535866 32593' --cutoff 500 --retrain "$tmp/corpus" --epoch 2 --qnorm

# Predictions of fastText, with probabilities
head -n 40 "$tmp/corpus" >"$tmp/some"
"$sesame" vectors predict "$tmp/model.bin" "$tmp/some" -k 3 >"$tmp/guesses"
that 'predictions' '[ "$(cksum <"$tmp/guesses")" = "1477881285 2387" ]'
"$sesame" vectors predict "$tmp/out" -k 5 --threshold 0.1 <"$tmp/some" >"$tmp/guesses"
that 'predictions of a quantized model' '[ "$(cksum <"$tmp/guesses")" = "2699212209 3983" ]'
that 'scores' '[ "$("$sesame" vectors test "$tmp/model.bin" "$tmp/corpus" | tr "\n\t" "  ")" = "N 600 P@1 0.677 R@1 0.628 " ]'
that 'scores as JSON' '"$sesame" vectors test "$tmp/model.bin" "$tmp/corpus" --json --per-label | grep -q "\"__label__a\": *{\"precision\""'

# The default trainer: threads, losses, tables
learn() { "$sesame" vectors supervised -q --overwrite --output "$@" 2>"$tmp/err"; }
for loss in softmax ns hs ova; do
    learn "$tmp/1.bin" -t 1 --dim 10 --loss $loss --wordNgrams 2 --bucket 500 --minn 2 --maxn 3 --lr 0.5 --epoch 20 "$tmp/corpus"
    learn "$tmp/2.bin" -t 2 --dim 10 --loss $loss --wordNgrams 2 --bucket 500 --minn 2 --maxn 3 --lr 0.5 --epoch 20 "$tmp/corpus"
    learn "$tmp/8.bin" -t 8 --dim 10 --loss $loss --wordNgrams 2 --bucket 500 --minn 2 --maxn 3 --lr 0.5 --epoch 20 "$tmp/corpus"
    that "$loss: the same bits on 1, 2 and 8 threads" 'cmp -s "$tmp/1.bin" "$tmp/2.bin" && cmp -s "$tmp/1.bin" "$tmp/8.bin"'
    "$sesame" vectors test "$tmp/1.bin" "$tmp/corpus" >"$tmp/out"
    that "$loss: learns" '[ "$(awk "/P@1/ { print (\$2 > 0.9) }" "$tmp/out")" = 1 ]'
done
awk 'BEGIN { print "label\ttext"; for (i = 0; i < 90; i++) print (i % 3 ? "good" : "very bad") "\t" (i % 3 ? "fine day" : "sad day __label__x") " w" i }' >"$tmp/table.tsv"
cut -f2 "$tmp/table.tsv" | tail -n +2 >"$tmp/table.txt"
that 'a table' 'learn "$tmp/table.bin" --dim 8 --lr 0.5 --epoch 10 "$tmp/table.tsv" && "$sesame" vectors predict "$tmp/table.bin" "$tmp/table.tsv" >"$tmp/rows" && "$sesame" vectors predict "$tmp/table.bin" <"$tmp/table.txt" >"$tmp/lines" &&
    cmp -s "$tmp/rows" "$tmp/lines" && [ "$(wc -l <"$tmp/rows")" -eq 90 ]'
that 'its score' '[ "$("$sesame" vectors test "$tmp/table.bin" "$tmp/table.tsv" | tr "\n\t" "  ")" = "N 90 P@1 1 R@1 1 " ]'
learn "$tmp/plain.bin" --dim 8 "$tmp/corpus"
that 'standard input' 'learn "$tmp/2.bin" --dim 8 - <"$tmp/corpus" && cmp -s "$tmp/plain.bin" "$tmp/2.bin"'
if command -v gzip >/dev/null && "$sesame" --version --verbose | grep -q "compressed with gzip): in this build"; then
    gzip -c "$tmp/corpus" >"$tmp/corpus.gz"
    that 'a compressed file' 'learn "$tmp/2.bin" --dim 8 "$tmp/corpus.gz" && cmp -s "$tmp/plain.bin" "$tmp/2.bin"'
else
    skipped=$((skipped + 1))
fi
that 'pretrained vectors' 'learn "$tmp/table.bin" --dim 300 --pretrainedVectors "$tmp/vec" "$tmp/corpus"'
that 'trials of autotune' 'learn "$tmp/t1.bin" -t 1 --autotune-validation "$tmp/corpus" --autotune-trials 3 --bucket 1000 "$tmp/corpus" &&
    learn "$tmp/t2.bin" -t 2 --autotune-validation "$tmp/corpus" --autotune-trials 3 --bucket 1000 "$tmp/corpus" && cmp -s "$tmp/t1.bin" "$tmp/t2.bin"'
that 'autotune within a size' 'learn "$tmp/t.ftz" --autotune-validation "$tmp/corpus" --autotune-trials 2 --dim 8 --wordNgrams 2 --bucket 1000 --minn 0 --epoch 5 --autotune-modelsize 30k --autotune-metric recallAtPrecision:50 "$tmp/corpus" &&
    [ "$(wc -c <"$tmp/t.ftz")" -le 30000 ]'

# Interruption: the state of a run continues to the same bits
i=0
while [ $i -lt 200 ]; do cat "$tmp/corpus" && echo && i=$((i + 1)); done >"$tmp/long"
learn "$tmp/whole.bin" -t 2 --dim 10 --epoch 12 "$tmp/long"
interrupted=0
for wait in 0.6 0.3 0.1 1.2; do
    [ $interrupted = 0 ] || break
    rm -f "$tmp/part.bin" "$tmp/part.bin.state"
    "$sesame" vectors supervised -q -t 2 --output "$tmp/part.bin" --dim 10 --epoch 12 "$tmp/long" 2>"$tmp/err" &
    pid=$!
    sleep $wait
    kill -TERM $pid 2>/dev/null
    wait $pid
    [ -e "$tmp/part.bin.state" ] && interrupted=1
done
if [ $interrupted = 1 ]; then
    that 'a state is not overwritten by accident' '! "$sesame" vectors supervised -q --output "$tmp/part.bin" --dim 10 --epoch 12 "$tmp/long" 2>"$tmp/err" && grep -q resume "$tmp/err"'
    that 'a state of other settings is refused' '! "$sesame" vectors supervised -q --resume --output "$tmp/part.bin" --dim 10 --epoch 13 "$tmp/long" 2>"$tmp/err" && grep -q "other settings" "$tmp/err"'
    that 'a model that cannot be written leaves the state' '! (ulimit -f 1; "$sesame" vectors supervised -q -t 1 --resume --output "$tmp/part.bin" --dim 10 --epoch 12 "$tmp/long") 2>"$tmp/err" && [ -e "$tmp/part.bin.state" ] && [ ! -e "$tmp/part.bin" ]'
    that 'a resumed run has the same bits' '"$sesame" vectors supervised -q -t 1 --resume --output "$tmp/part.bin" --dim 10 --epoch 12 "$tmp/long" 2>"$tmp/err" && cmp -s "$tmp/whole.bin" "$tmp/part.bin" && [ ! -e "$tmp/part.bin.state" ]'
else
    skipped=$((skipped + 4))
fi

# Bad input
refuses() { # refuses TEXT COMMAND...: vectors COMMAND fails with TEXT
    text=$1
    shift
    rm -f "$tmp/out"
    if "$sesame" vectors "$@" >"$tmp/stdout" 2>"$tmp/err"; then fail "accepted: $*"; else that "$*" 'grep -qF -- "$text" "$tmp/err" && [ ! -e "$tmp/out" ]'; fi
}
printf '__label__a one two\n__label__b three\nfour five\n' >"$tmp/unlabeled"
refuses 'line 3: no label' supervised -o "$tmp/out" "$tmp/unlabeled"
printf '__label__a one\n__label__a two\n' >"$tmp/single"
refuses 'all texts have the same label' supervised -o "$tmp/out" "$tmp/single"
: >"$tmp/empty"
refuses 'no texts' supervised -o "$tmp/out" "$tmp/empty"
refuses 'no labels' train --exact fasttext --model supervised -o "$tmp/out" "$tmp/empty"
refuses 'columns, the model has 7' supervised --dim 7 --pretrainedVectors "$tmp/vec" -o "$tmp/out" "$tmp/corpus"
refuses 'expected softmax, ns, hs or ova' supervised --loss hinge -o "$tmp/out" "$tmp/corpus"
refuses 'diverged' supervised --lr 1e6 -o "$tmp/out" "$tmp/corpus"
refuses '--autotune-validation' supervised --autotune-trials 3 -o "$tmp/out" "$tmp/corpus"
refuses '--autotune-validation' supervised --autotune-metric f1 -o "$tmp/out" "$tmp/corpus"
refuses '--autotune-validation' supervised --autotune-predictions 1 -o "$tmp/out" "$tmp/corpus"
refuses '--minn 4 is larger than --maxn 3' supervised --minn 4 --maxn 3 -o "$tmp/out" "$tmp/corpus"
refuses '--neg has no effect with --loss hs; use --loss ns' supervised --loss hs --neg 3 -o "$tmp/out" "$tmp/corpus"
refuses '--bucket has no effect without n-grams' supervised --bucket 30 -o "$tmp/out" "$tmp/corpus"
refuses 'is a folder; expected a file' supervised --overwrite -o "$tmp" "$tmp/absent"
refuses 'nothing to resume' supervised --resume -o "$tmp/out" "$tmp/corpus"
refuses 'given 2 times' supervised --autotune-validation - -o "$tmp/out" -
refuses '--epoch needs --retrain' quantize "$tmp/model.bin" --epoch 5 -o "$tmp/out"
refuses '--lr needs --retrain' quantize "$tmp/model.bin" --lr 0.05 -o "$tmp/out"
refuses 'no column' predict "$tmp/model.bin" "$tmp/table.tsv" --text-column other
refuses 'expected f1' supervised --autotune-validation "$tmp/corpus" --autotune-metric auc -o "$tmp/out" "$tmp/corpus"
refuses 'too small to quantize' quantize "$tmp/1.bin" --qout -o "$tmp/out"
refuses 'quantized already' quantize "$tmp/t.ftz" -o "$tmp/out"
refuses 'absent: No such file' predict "$tmp/model.bin" "$tmp/absent"
refuses 'not a fastText model' predict "$tmp/vec" "$tmp/some"
refuses 'not labels' predict tests/fuzz/corpus/fuzz_fasttext_model/skipgram "$tmp/some"
for n in 4 60 100 700 3000; do
    head -c $n "$tmp/model.bin" >"$tmp/short.bin"
    refuses 'short.bin' predict "$tmp/short.bin" "$tmp/some"
done
if [ -e /dev/full ]; then refuses '' quantize "$tmp/model.bin" -o /dev/full/x; fi
counted
