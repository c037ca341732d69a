#!/bin/sh
# `sesame vectors train --model glove`, pv-dbow and pv-dm, `sesame vectors infer`.
set -u
. tests/counted.sh
awk 'BEGIN { x = 1; for (i = 0; i < 6000; i++) { x = x * 16807 % 2147483647; y = int(x % 1000 / 100) * int(x / 1000 % 30)
    printf "w%d%s", y, x % 17 == 0 ? "\n" : " " } print "end" }' >"$tmp/corpus"
mkdir "$tmp/empty"

train() { "$sesame" vectors train -q --overwrite "$@" "$tmp/corpus" >"$tmp/out" 2>"$tmp/err"; }
refuses() { # refuses TEXT OPTION...: an error with this text, and no output
    text=$1
    shift
    rm -f "$tmp/empty/x"
    if train "$@" --output "$tmp/empty/x" || ! grep -q -e "$text" "$tmp/err" || [ -n "$(ls -A "$tmp/empty")" ]; then fail "$*"; else pass; fi
}

for model in glove "pv-dbow" "pv-dbow --train-words yes" "pv-dm" "pv-dm --inputs concat"; do
    # shellcheck disable=SC2086
    that "$model: trains" "train --model $model --epochs 3 --dim 10 --threads 1 --output '$tmp/1'"
    # shellcheck disable=SC2086
    that "$model: same bits on 8 threads" "train --model $model --epochs 3 --dim 10 --threads 8 --output '$tmp/8' && cmp -s '$tmp/1' '$tmp/8'"
done
that 'little memory gives the same bits' "train --model glove --memory 0.0001 --output '$tmp/a' && train --model glove --output '$tmp/b' && cmp -s '$tmp/a' '$tmp/b'"
that 'other seeds give other bits' "train --model glove --seed 2 --output '$tmp/a' && ! cmp -s '$tmp/a' '$tmp/b'"
that 'both vectors have twice the columns' "train --model glove --vectors both --dim 7 --output '$tmp/a' && [ \"\$(head -n 1 '$tmp/a' | cut -d ' ' -f 2)\" = 14 ]"
that 'words are sorted by falling count' "grep -q '^w0 ' '$tmp/a' && [ \"\$(sed -n 2p '$tmp/a' | cut -d ' ' -f 1)\" = w0 ]"

# Infinite training, interrupted: a checkpoint and nothing else; then resumed with the bits of an uninterrupted run.
for model in glove pv-dbow; do
    rm -rf "$tmp/run" && mkdir "$tmp/run"
    "$sesame" vectors train -q --model $model --epochs 400 --output "$tmp/run/x" "$tmp/corpus" 2>"$tmp/err" &
    pid=$!
    sleep 0.15
    kill -INT $pid
    wait $pid
    if [ ! -e "$tmp/run/x.checkpoint" ]; then # it had finished, or not begun
        that "$model: no other file" "[ -z \"\$(ls -A '$tmp/run' | grep -v '^x\$')\" ]"
        echo "skipped: $model was not training when interrupted" && skipped=$((skipped + 1))
        continue
    fi
    that "$model: leaves the checkpoint only" "[ \"\$(ls -A '$tmp/run')\" = x.checkpoint ]"
    that "$model: refuses other settings" "! '$sesame' vectors train -q --model $model --epochs 400 --dim 9 --resume --output '$tmp/run/x' '$tmp/corpus' 2>'$tmp/err' && grep -q 'other settings' '$tmp/err'"
    that "$model: resumes" "'$sesame' vectors train -q --model $model --epochs 400 --resume --output '$tmp/run/x' '$tmp/corpus' 2>'$tmp/err'"
    that "$model: the same bits" "train --model $model --epochs 400 --output '$tmp/a' && cmp -s '$tmp/run/x' '$tmp/a' && [ ! -e '$tmp/run/x.checkpoint' ]"
done

refuses 'occurs at least 100000 times' --model glove --min-count 100000
refuses 'occurs at least 100000 times' --model pv-dm --min-count 100000
refuses 'nothing to resume' --model glove --resume
refuses 'not an option of --model glove' --model glove --negative 5
refuses 'expected a number from' --model glove --dim 0
for model in glove pv-dbow pv-dm; do
    that "$model: binary" "train --model $model --dim 6 --epochs 2 --format word2vec-binary --output '$tmp/b.bin'"
    for format in word2vec vec glove safetensors fasttext; do
        rm -rf "$tmp/v"
        that "$model: $format" "train --model $model --dim 6 --epochs 2 --format $format --output '$tmp/v' &&
            '$sesame' vectors convert -q --overwrite --format word2vec-binary --output '$tmp/converted' '$tmp/v' && cmp -s '$tmp/converted' '$tmp/b.bin'"
    done
done
that 'a vector of each line' "[ \"\$(head -n 1 '$tmp/b.bin')\" = \"\$(wc -l <'$tmp/corpus') 6\" ]"
refuses 'the loss is not finite' --model pv-dbow --lr 100 --epochs 200

# A write that fails, as on a full disk: files are limited to 8 blocks, which the temporary file of the pairs exceeds.
for model in glove pv-dm; do
    rm -rf "$tmp/run" && mkdir "$tmp/run"
    (trap '' XFSZ && ulimit -f 8 && "$sesame" vectors train -q --model $model --epochs 1 --output "$tmp/run/x" "$tmp/corpus") 2>"$tmp/err"
    that "$model: a failed write is an error and leaves nothing" "[ $? = 3 ] && grep -q 'cannot be written' '$tmp/err' && [ -z \"\$(ls -A '$tmp/run')\" ]"
done

train --model pv-dbow --words text --epochs 5 --dim 6 --output "$tmp/pv" || fail 'trains for inference'
infer() { "$sesame" vectors infer "$@" >"$tmp/out" 2>"$tmp/err"; }
printf 'w0 w1 w2\nunknown\n\nw0 w1 w2' >"$tmp/texts"
that 'infers' 'infer "$tmp/pv" <"$tmp/texts" && [ "$(wc -l <"$tmp/out")" = 4 ]'
that 'unknown words give zeros' '[ "$(sed -n 2p "$tmp/out")" = "0.0 0.0 0.0 0.0 0.0 0.0" ] && [ "$(sed -n 3p "$tmp/out")" = "0.0 0.0 0.0 0.0 0.0 0.0" ]'
that 'the same text gives the same vector' '[ "$(sed -n 1p "$tmp/out")" = "$(sed -n 4p "$tmp/out")" ] && [ "$(sed -n 1p "$tmp/out")" != "0.0 0.0 0.0 0.0 0.0 0.0" ]'
that 'threads do not matter' 'cp "$tmp/out" "$tmp/one" && infer --threads 3 "$tmp/pv" "$tmp/texts" && cmp -s "$tmp/out" "$tmp/one"'
that 'writes JSON' 'infer --json "$tmp/pv" "$tmp/texts" && head -n 2 "$tmp/out" | tail -n 1 | grep -q -x "\[0.0,0.0,0.0,0.0,0.0,0.0\]"'
that 'refuses another file' '! infer "$tmp/corpus" "$tmp/texts"'
counted
