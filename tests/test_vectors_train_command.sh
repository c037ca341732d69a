#!/bin/sh
# `sesame vectors train` without --exact, and `sesame vectors phrases`: files, formats, options of the two modes,
# damaged input, full disk, Ctrl-C and --resume.
set -u
. tests/counted.sh

awk 'BEGIN { x = 1; for (i = 0; i < 20000; i++) { x = x * 16807 % 2147483647; y = int(x % 1000 / 100) * int(x / 1000 % 30)
    printf "w%d%s", y, x % 17 == 0 ? "\n" : " " } printf "\n" }' >"$tmp/corpus"

train() { "$sesame" vectors train "$@" 2>"$tmp/err"; }
same() { cmp -s "$tmp/$1" "$tmp/$2"; }
refuses() { # refuses TEXT OPTION...
    text=$1
    shift
    if train -q --output "$tmp/refused" "$@"; then fail "accepted: $*"
    elif [ -e "$tmp/refused" ]; then fail "wrote a file: $*"
    elif grep -q -e "$text" "$tmp/err"; then pass
    else fail "$* prints: $(cat "$tmp/err")"; fi
}

that 'text' 'train --dim 8 --output "$tmp/a" "$tmp/corpus" && head -1 "$tmp/a" | grep -q "^[0-9]* 8$"'
that 'the summary has the loss' 'grep -q "mean loss of the last pass [0-9]" "$tmp/err"'
that 'two threads write the same' 'train -q --dim 8 -t 2 --output "$tmp/b" "$tmp/corpus" && same a b'
that 'so do pipes and compressed files' 'train -q --dim 8 -t 1 --overwrite --output "$tmp/b" - <"$tmp/corpus" && same a b'
that 'several files are one text' 'head -500 "$tmp/corpus" >"$tmp/c1"; tail -n +501 "$tmp/corpus" >"$tmp/c2"
    train -q --dim 8 --overwrite --output "$tmp/b" "$tmp/c1" "$tmp/c2" && same a b'
that 'binary' 'train -q --dim 8 --format word2vec-binary --output "$tmp/a.bin" "$tmp/corpus" &&
    [ "$(head -1 "$tmp/a.bin")" = "$(head -1 "$tmp/a")" ]'
that 'fastText' 'train -q --dim 8 --maxn 4 --bucket 1000 --format fasttext --output "$tmp/f.bin" "$tmp/corpus" &&
    [ "$(od -A n -t d4 -N 12 "$tmp/f.bin" | tr -s " ")" = " 793712314 12 8" ]'
# Each format holds the vectors of the binary format, bit for bit; the n-grams of a fastText model give the same vectors.
holds() { # holds FILE BINARY
    "$sesame" vectors convert -q --overwrite --format word2vec-binary --output "$tmp/converted" "$tmp/$1" && same converted "$2"
}
for model in "skipgram" "cbow --loss hs" "skipgram --maxn 4 --bucket 1000" "cbow --loss hs --maxn 3 --bucket 77 --dim 16"; do
    that "$model: binary" "train -q --dim 8 --model $model --overwrite --format word2vec-binary --output '$tmp/b.bin' '$tmp/corpus'"
    for format in word2vec vec glove safetensors fasttext; do
        rm -rf "$tmp/v"
        that "$model: $format" "train -q --dim 8 --model $model --format $format --output '$tmp/v' '$tmp/corpus' && holds v b.bin"
    done
done
that 'a folder with a slash' 'rm -rf "$tmp/v" && train -q --dim 8 --format safetensors --checkpoint-every 1 --output "$tmp/v/" "$tmp/corpus" &&
    holds v a.bin && [ ! -e "$tmp/v.checkpoint" ]'
that 'prose' 'printf "The cat, the DOG. The cat!\n" >"$tmp/prose" &&
    train -q --dim 2 --words text --min-count 1 --output "$tmp/p" "$tmp/prose" && grep -q "^dog " "$tmp/p" && grep -q "^, " "$tmp/p"'

refuses 'exists: --overwrite' --output "$tmp/a" "$tmp/corpus"
refuses 'not an option of --model skipgram' --size 10 "$tmp/corpus"
refuses 'not an option of --model cbow' --model cbow --iter 3 "$tmp/corpus"
refuses 'binary belongs to --exact' --binary "$tmp/corpus"
refuses 'not an option of word2vec' --exact word2vec --epochs 3 "$tmp/corpus"
refuses 'does not apply to --exact' --exact word2vec --resume "$tmp/corpus"
refuses 'does not apply to --exact' --exact fasttext --format fasttext "$tmp/corpus"
refuses 'takes one text' --exact word2vec "$tmp/corpus" "$tmp/corpus"
refuses 'unknown; expected one of' --model x "$tmp/corpus"
refuses 'device "gpu": unknown device: expected cpu, cuda or cuda:N' --device gpu "$tmp/corpus"
for model in pv-dbow pv-dm; do
    refuses "is trained on a CPU only; a GPU trains skipgram, cbow and glove" --model $model --device cuda "$tmp/corpus"
done
refuses '\--device does not apply to --exact' --exact word2vec --device cuda "$tmp/corpus"
if [ "$("$sesame" doctor --json --quick | sed -n 's/^ *"gpus": \[\],*$/none/p')" = none ]; then # a reason, before the text is read
    refuses 'device "cuda": \(the CUDA module\|no such GPU\)' --device cuda "$tmp/missing"
    SESAME_DEVICE=cuda refuses 'device "cuda"' --model glove "$tmp/corpus"
fi
that '--device cpu is the default' 'train -q --dim 8 --device cpu --overwrite --output "$tmp/b" "$tmp/corpus" && same a b'
refuses 'nothing to resume' --resume "$tmp/corpus"
# Options that would have no effect.
refuses 'negative has no effect with --loss hs$' --loss hs --negative 3 "$tmp/corpus"
refuses 'minn has no effect with --maxn 0, the default' --minn 2 "$tmp/corpus"
refuses 'minn has no effect with --maxn 00$' --model cbow --minn 2 --maxn 00 "$tmp/corpus"
refuses 'bucket has no effect with --maxn 0, the default' --bucket 10 "$tmp/corpus"
refuses 'window has no effect with --train-words no, the default' --model pv-dbow --window 3 "$tmp/corpus"
refuses 'wordNgrams belongs to --model supervised, not to --model skipgram' --exact fasttext --wordNgrams 2 "$tmp/corpus"
refuses 'pretrainedVectors belongs to' --exact fasttext --model cbow --pretrainedVectors x "$tmp/corpus"
# Ranges are printed in full.
refuses 'iter 9999999: expected a number from 1 to 1048576$' --exact word2vec --iter 9999999 "$tmp/corpus"
refuses 'bucket -1: expected a number from 0 to 2147483647$' --exact fasttext --bucket -1 "$tmp/corpus"
# An output that is a folder fails before the text is read.
mkdir "$tmp/folder"
for other in "--overwrite" "--overwrite --model pv-dbow" "--overwrite --exact word2vec"; do
    refuses 'folder is a folder; expected a file' --output "$tmp/folder" $other "$tmp/missing"
done
refuses 'folder is not a folder of word vectors' --overwrite --format safetensors --output "$tmp/folder" "$tmp/missing"
refuses 'a is not a folder of word vectors' --overwrite --format safetensors --output "$tmp/a" "$tmp/missing"
echo state >"$tmp/refused.checkpoint"
for model in skipgram glove pv-dbow; do
    refuses 'refused.checkpoint exists: --resume continues that run, --overwrite starts again' --model $model "$tmp/corpus"
done
that 'the checkpoint stays' '[ "$(cat "$tmp/refused.checkpoint")" = state ]'
rm "$tmp/refused.checkpoint"
refuses 'given 2 times: standard input is read only once' - "$tmp/corpus" - </dev/null
refuses 'output -: vectors are not written to standard output' --output - "$tmp/corpus"
refuses 'its folder: .*/none: No such file' --output "$tmp/none/v" "$tmp/missing"
refuses 'its folder: .*/corpus: Not a directory' --output "$tmp/corpus/v" "$tmp/missing"
refuses 'occurs at least 100000 times' --min-count 100000 "$tmp/corpus"
: >"$tmp/empty"
refuses 'no words' "$tmp/empty"
refuses 'No such file' "$tmp/missing"
if [ -w /dev/full ]; then
    that 'full disk' '! train -q --overwrite --output /dev/full "$tmp/corpus" && [ -s "$tmp/err" ] && [ -c /dev/full ]'
fi

{ cat "$tmp/corpus"; head -c 10000000 /dev/zero | tr '\0' x; printf '\n'; } >"$tmp/bad"
that 'skipped words are reported, the rest is trained' 'train --dim 8 --output "$tmp/s" "$tmp/bad" && same a s &&
    grep -q "1 word is longer than 1000 bytes and was skipped; the first in line" "$tmp/err"'
printf 'a b\ncaf\351 b a\n' >"$tmp/latin1"
refuses 'latin1: line 2: byte 4: invalid UTF-8' --overwrite "$tmp/latin1"
that 'Latin-1 is converted' 'train -q --overwrite --min-count 1 --dim 4 --encoding latin1 --output "$tmp/v1" "$tmp/latin1" &&
    iconv -f LATIN1 -t UTF-8 "$tmp/latin1" >"$tmp/utf8" &&
    train -q --min-count 1 --dim 4 --output "$tmp/v2" "$tmp/utf8" && cmp -s "$tmp/v1" "$tmp/v2" && grep -q "^café " "$tmp/v1"'
refuses 'encoding does not apply to --exact' --exact word2vec --encoding latin1 "$tmp/latin1"

# Ctrl-C: the checkpoint, then the bits of a run without interruption. A fast machine may finish first.
that 'a run of some seconds' 'train -q --epochs 60 -t 2 --output "$tmp/whole" "$tmp/corpus"'
for signal in INT TERM; do
    rm -f "$tmp/part"
    # A shell ignores INT in background jobs; env restores it.
    env --default-signal=INT "$sesame" vectors train -q --epochs 60 -t 1 --checkpoint-every 1 --output "$tmp/part" "$tmp/corpus" 2>"$tmp/err" &
    job=$!
    sleep 0.3
    kill -$signal $job 2>/dev/null
    wait $job
    code=$?
    if [ -e "$tmp/part" ]; then
        that "$signal: finished before the signal" 'same whole part'
    elif [ ! -e "$tmp/part.checkpoint" ]; then # stopped while it read the text
        that "$signal: stopped early" '[ $code -gt 128 ]'
    else
        that "$signal: exit code and hint" '[ $code -gt 128 ] && grep -q -e "--resume continues" "$tmp/err"'
        that "$signal: resumed" 'train -q --epochs 60 -t 2 --resume --output "$tmp/part" "$tmp/corpus" && same whole part'
        that "$signal: the checkpoint is gone" '[ ! -e "$tmp/part.checkpoint" ]'
    fi
done

# word2phrase writes a file with this sum for the same text.
awk 'BEGIN { x = 1; for (i = 0; i < 6000; i++) { x = x * 16807 % 2147483647
    printf "%s%s", x % 50 == 0 ? "new york" : "w" x % 97, x % 13 == 0 ? "\n" : " " } printf "\n" }' >"$tmp/text"
that 'phrases' '"$sesame" vectors phrases -q --threshold 20 --output "$tmp/phrases" "$tmp/text" && grep -q new_york "$tmp/phrases"'
that 'word2phrase'\''s bytes' '[ "$(cksum <"$tmp/phrases")" = "3089347476 24468" ]'
that 'two passes' 'sed "s/new york/new york times/g" "$tmp/text" >"$tmp/text2" &&
    "$sesame" vectors phrases -q --threshold 20 --passes 2 --output "$tmp/phrases2" "$tmp/text2" &&
    grep -q new_york_times "$tmp/phrases2" && [ ! -e "$tmp/phrases2.pass0" ]'
that 'phrases: an existing file is kept' '! "$sesame" vectors phrases -q --output "$tmp/phrases" "$tmp/text" 2>"$tmp/err" && grep -q overwrite "$tmp/err"'
that 'phrases: a file of a pass is kept' 'rm -f "$tmp/p"; echo mine >"$tmp/p.pass0"
    ! "$sesame" vectors phrases -q --passes 2 --output "$tmp/p" "$tmp/text" 2>"$tmp/err" && grep -q "pass0: already exists" "$tmp/err" && [ "$(cat "$tmp/p.pass0")" = mine ]'
that 'phrases: standard input' '! "$sesame" vectors phrases -q --output "$tmp/x" - </dev/null 2>"$tmp/err" && grep -q "read twice" "$tmp/err"'

counted
