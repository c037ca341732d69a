#!/bin/sh
# compress: candidates, table, files, choice, chains, resume, interruption, jobs, refusals.
# Usage: test_cli_compress.sh BUILD_DIR, from the source folder.
. tests/finetune_fixture.sh

# shellcheck disable=SC2086
ok "a model" exits 0 "$sesame" finetune $small --task classify --train "$tmp/train.tsv" --epochs 6 -o "$tmp/model"

compress() { "$sesame" compress --threads 1 --lr 3e-3 --epochs 4 --texts 8 --rounds 1 --eval "$tmp/dev.tsv" "$@"; }
full() { compress "$tmp/model" --data "$tmp/train.tsv" "$@"; }
figure() { sed -n "s/^ *\"$1\": \([-0-9.e]*\).*/\1/p" "$2" | head -1; }
candidates() { sed -n 's/^      "name": "\(.*\)",/\1/p' "$1" | tr '\n' ' '; }

# A model is trained once and measured in both precisions.
ok "compress" exits 0 full -o "$tmp/a" --methods student,int8 --by size
ok "its candidates" test "$(candidates "$tmp/a/compress.json")" = 'original student:0.5 student:0.33 int8 student:0.5+int8 student:0.33+int8 '
ok "two students" test "$(grep -l finetune "$tmp"/a/candidates/*.json | wc -l)" = 2
ok "rows" test "$(grep -c '^\(original\|int8\|student\)[^ ]* .*x  *[0-9.]* KiB' "$tmp/out")" = 6
ok "one is chosen" test "$(grep -c '  chosen$' "$tmp/out")" = 1
ok "a plot" out_has '\* chosen  + original  o on the front'
ok "the choice" out_has '/a/model is [a-z]*[0-9:.+int]*: the least size'
ok "the commands" out_has '^sesame quantize .*student:0.*+int8 --dtype int8$'
ok "energy is measured or said to be missing" sh -c "grep -q 'mJ\|Energy: not available: ' '$tmp/out'"
ok "no column of energy without a counter" sh -c "grep -q mJ '$tmp/out' || ! grep -q '^candidate.*energy' '$tmp/out'"
ok "progress" err_has '^\[5/5\] student:0.33+int8: made in '
ok "and measures" err_has '^\[6/6\] student:0.33+int8: accuracy [01]\.'
ok "a picture" grep -q '<svg.*Compression of model' "$tmp/a/compress.svg"
ok "a page" grep -q '<html' "$tmp/a/compress.html"
ok "for dark screens" grep -q 'prefers-color-scheme:dark' "$tmp/a/compress.html"
ok "half the layers" grep -q '"num_hidden_layers": 1' "$tmp/a/candidates/student:0.5/config.json"
ok "words suffice" above "$(figure score "$tmp/a/candidates/student:0.5+int8.json")" 0.9
for name in original int8 student:0.5; do
    for key in score low high latency texts_per_second memory_bytes bytes parameters flops_per_token speed; do
        ok "$name: $key" above "$(figure $key "$tmp/a/candidates/$name.json")" 0.000001
    done
done
ok "half the products" test "$(figure flops_per_token "$tmp/a/candidates/student:0.5.json")" = 16384.0
ok "of all" test "$(figure flops_per_token "$tmp/a/candidates/original.json")" = 32768.0
ok "the ratio of the original" test "$(figure speed "$tmp/a/candidates/original.json")" = 1.0

# eval gives the same scores.
ok "eval" exits 0 "$sesame" eval "$tmp/a/candidates/student:0.5+int8" "$tmp/dev.tsv" --task classify --threads 1 --json
ok "the same score" test "$(score eval_accuracy "$tmp/out")" = "$(figure score "$tmp/a/candidates/student:0.5+int8.json")"

# The chosen model is complete and runs.
ok "the card" grep -q '^## Compression' "$tmp/a/model/README.md"
ok "how it was made" grep -q '^sesame .*--dtype int8' "$tmp/a/model/README.md"
ok "eval of the model" exits 0 "$sesame" eval "$tmp/a/model" "$tmp/dev.tsv"
ok "pipeline of the model" exits 0 "$sesame" text-classification --model "$tmp/a/model" 'it was good .'
ok "its answer" out_has 'pos'
ok "its title" grep -q '^# model, compressed: student:0.[35]*+int8$' "$tmp/a/model/README.md"
ok "one title" test "$(grep -c '^# ' "$tmp/a/model/README.md")" = 1
ok "at most 1 point" grep -q 'loses at most 1 point\.' "$tmp/a/model/README.md"
ok "transformers cannot read it" sh -c "! grep -i transformers '$tmp/a/model/README.md'"

# The printed commands make the same files.
full -o "$tmp/b" --methods student:1+int8 --max-drop 100 >"$tmp/out" 2>"$tmp/err"
ok "a chain" test "$(candidates "$tmp/b/compress.json")" = 'original student:1 student:1+int8 '
sed -n 's/^sesame \(finetune .*\) --output .*/\1/p' "$tmp/out" | head -1 >"$tmp/line"
ok "repeat" sh -c "'$sesame' $(cat "$tmp/line") --threads 1 --output '$tmp/again' 2>/dev/null >/dev/null"
ok "the same weights" cmp "$tmp/again/model.safetensors" "$tmp/b/candidates/student:1/model.safetensors"

# Resume: finished candidates stay, methods may be added, another setting is refused.
ok "not without being asked" exits 3 full -o "$tmp/a"
ok "its message" err_has '--resume continues its compression'
cp "$tmp/a/candidates/student:0.5.json" "$tmp/before.json"
ok "resume" exits 0 full -o "$tmp/a" --resume --methods student,f16,int8 --json
ok "new ones only" err_has '6 models are made, 3 are left'
ok "the old record" cmp "$tmp/before.json" "$tmp/a/candidates/student:0.5.json"
ok "a chain with the new one" grep -q '"name": "student:0.5+f16"' "$tmp/out"
for key in settings command metric by max_drop chosen candidates name state commands score speed on_front; do
    ok "JSON: $key" out_has "\"$key\": "
done
rm "$tmp/a/candidates/int8.json"
ok "one is lost" exits 0 full -o "$tmp/a" --resume --methods student,int8
ok "one runs" err_has '^\[1/1\] int8: made in'
ok "another setting" exits 3 full -o "$tmp/a" --resume --epochs 5
ok "is named" err_has 'was run with epochs 4.0, not 5.0; --overwrite repeats all candidates'
ok "both" exits 2 full -o "$tmp/a" --resume --overwrite
ok "nothing to resume" exits 3 full -o "$tmp/model" --resume

# Every method makes a model of the small classifier, alone and in int8.
for name in $(sed -n 's/^SES_COMPRESS("\([a-z0-9-]*\)".*/\1/p' src/cli/compress/compress_methods.def); do
    case $name in exit) methods=exits,int8,exit ;; int8) methods=int8 ;; *) methods=$name,int8 ;; esac
    ok "$name" exits 0 full -o "$tmp/method-$name" --methods "$methods"
    ok "$name: no failure" sh -c "! grep -h '\"reason\"' $tmp/method-$name/candidates/*.json"
done
ok "four ways to leave" test "$(ls "$tmp"/method-exit/candidates/*exit:*.json | wc -l)" = 4
ok "exits are not chosen without a rule" exits 0 full -o "$tmp/method-exits" --resume --methods exits --max-drop 100 --json
ok "the original" out_has '"chosen": "original"'
ok "a rule brings its exits" exits 0 full -o "$tmp/rule" --methods exit
ok "both" test "$(candidates "$tmp/rule/compress.json")" = 'original exits exits+exit:0.1 exits+exit:0.3 '
for x in f16 int8; do ok "trained in $x" exits 2 full -o "$tmp/x" --dtype $x; done
ok "said" err_has '--dtype: models are trained in f32 or bf16'
ok "leave at once" exits 0 full -o "$tmp/method-exit" --resume --methods exits+exit:1
ok "fewer layers, fewer products" test "$(figure flops_per_token "$tmp/method-exit/candidates/exits+exit:1.json")" = 16384.0
ok "a usage error of a command" exits 0 full -o "$tmp/usage" --methods exits+qat
ok "its log" grep -q "^Try 'sesame finetune --help'" "$tmp/usage/candidates/exits+qat.log"
ok "its reason" grep -q '"reason": "exits cannot be trained with a teacher' "$tmp/usage/candidates/exits+qat.json"
grep -q 'factorize .* --data .*train.tsv --task classify' "$tmp/method-lowrank/candidates/lowrank:0.5.json"
ok "factors for the data" test $? = 0
ok "all default methods" exits 0 full -o "$tmp/default"
ok "of all kinds" test "$(grep -c '^\[.*times as fast' "$tmp/err")" -ge 6

ok "a rule" exits 0 full -o "$tmp/card" --methods exits+exit:1 --max-drop 100
if grep -q '"chosen": "exits+exit:1"' "$tmp/card/compress.json"; then # it leaves at the first of two layers
    ok "in the card" grep -q "by the rule entropy:1 of config.json" "$tmp/card/model/README.md"
    ok "in the folder" grep -q '"rule": "entropy:1"' "$tmp/card/model/config.json"
    ok "which predicts so" exits 0 "$sesame" text-classification -m "$tmp/card/model" --json 'it was good .'
    ok "after one layer" out_has '"layers": 1}'
    ok "transformers reads it" grep -q 'from transformers' "$tmp/card/model/README.md"
fi

# Without training data: methods that need none; the others with the reason.
ok "a named method needs data" exits 2 compress "$tmp/model" -o "$tmp/c" --methods student:0.5,int8
ok "said" err_has 'student:0.5 needs training data: give --data FILE'
ok "no data" exits 0 compress "$tmp/model" -o "$tmp/c"
ok "the reason" out_has 'student:0.5 has no result (nor 1 that starts with it): needs training data:'
ok "int8 is measured" grep -q '"state": "measured"' "$tmp/c/candidates/int8.json"

# Nothing qualifies: the original, and it is said.
ok "too many layers" exits 0 full -o "$tmp/d" --methods student:7
ok "said" out_has 'No candidate has less latency and loses at most 1 point:'
ok "why" out_has 'student:7 has no result: 7 layers of 2: expected fewer'
ok "the original" cmp "$tmp/d/model/model.safetensors" "$tmp/model/model.safetensors"
ok "by size" exits 0 full -o "$tmp/e" --methods int8 --by size --json
ok "is chosen" out_has '"by": "size", "max_drop": 1.0, "chosen": "int8"'

# An encoder is fine-tuned first; an adapter becomes a whole model.
cp -r "$tmp/model" "$tmp/encoder"
sed 's/BertForSequenceClassification/BertModel/' "$tmp/model/config.json" >"$tmp/encoder/config.json"
rm -r "$tmp/encoder/run.json" "$tmp"/encoder/checkpoint-*
ok "no data to train it" exits 3 compress "$tmp/encoder" --task classify -o "$tmp/f" --methods int8
ok "said" err_has 'BertModel has no head for the task classify: --data FILE trains one'
ok "an encoder" exits 0 compress "$tmp/encoder" --task classify --data "$tmp/train.tsv" -o "$tmp/f" --methods int8
ok "is trained" err_has '^\[1/2\] original: made in'
ok "lora" exits 0 "$sesame" finetune -m "$tmp/model" --task classify --train "$tmp/train.tsv" --epochs 1 --adapter lora -o "$tmp/lora" --threads 1
ok "an adapter" exits 0 compress "$tmp/lora" -o "$tmp/g" --methods int8
ok "is merged" test -s "$tmp/g/candidates/original/model.safetensors"

# Interrupted while a model is trained: continued from its checkpoint, with the same weights.
ok "whole" exits 0 full -o "$tmp/whole" --methods student:1 --epochs 300
full -o "$tmp/half" --methods student:1 --epochs 300 >"$tmp/out" 2>"$tmp/err" &
pid=$!
i=0
while [ ! -s "$tmp/half/candidates/student:1/log.jsonl" ] && [ $i -lt 600 ]; do sleep 0.05; i=$((i + 1)); done
kill -INT $pid
wait $pid
code=$?
ok "the code of the signal" test $code = 130 -o $code = 0 # a fast machine may have finished
[ $code = 0 ] || ok "said" err_has 'stopped; the same command with --resume continues'
ok "continue" exits 0 full -o "$tmp/half" --methods student:1 --epochs 300 --resume
ok "the same weights" cmp "$tmp/half/candidates/student:1/model.safetensors" "$tmp/whole/candidates/student:1/model.safetensors"

# After SIGTERM no child is left that holds a lock, nor after the death of the parent.
for sig in TERM KILL; do
    full -o "$tmp/$sig" --methods student:1 --epochs 3000 >"$tmp/out" 2>"$tmp/err" &
    pid=$!
    i=0
    while [ ! -s "$tmp/$sig/candidates/student:1/log.jsonl" ] && [ $i -lt 600 ]; do sleep 0.05; i=$((i + 1)); done
    for p in /proc/[0-9]*; do # the child of the shell, if the function has a shell of its own
        grep -q "^PPid:[[:space:]]*$pid\$" "$p/status" 2>/dev/null && cat "$p/cmdline" 2>/dev/null | tr '\0' ' ' | grep -q ' compress ' && pid=${p#/proc/}
    done
    kill -$sig "$pid"
    i=0
    while [ -d "/proc/$pid" ] && ! grep -q '^State:.*Z' "/proc/$pid/status" 2>/dev/null && [ $i -lt 600 ]; do sleep 0.05; i=$((i + 1)); done
    [ $sig = TERM ] || sleep 2 # children learn of it by a signal
    for p in /proc/[0-9]*; do cat "$p/cmdline" 2>/dev/null | tr '\0' ' ' | grep " --output $tmp/$sig/"; done >"$tmp/left"
    ok "no child after $sig" test ! -s "$tmp/left"
    wait
done

# Several jobs, and a budget.
ok "three jobs" exits 0 full -o "$tmp/jobs" --jobs 3 --methods student,int8
ok "the same student" cmp "$tmp/jobs/candidates/student:0.5/model.safetensors" "$tmp/a/candidates/student:0.5/model.safetensors"
ok "a budget" exits 0 full -o "$tmp/budget" --budget 0.00001
ok "stops" out_has 'has no result: not made: --budget was used up; --resume continues'

# Made first, measured later; figures of another machine are measured again.
ok "make only" exits 0 full -o "$tmp/later" --methods int8 --make-only
ok "said" err_has 'the same command with --resume measures them'
ok "not measured" grep -q '"state": "made"' "$tmp/later/candidates/int8.json"
ok "measure" exits 0 full -o "$tmp/later" --methods int8 --resume
ok "measured" grep -q '"state": "measured"' "$tmp/later/candidates/int8.json"
ok "of another machine" exits 0 full -o "$tmp/later" --methods int8 --resume --isa ref
ok "measured again" err_has '^\[2/2\] int8: accuracy'
ok "and of this one" exits 0 full -o "$tmp/later" --methods int8 --resume

# A candidate whose record or files have changed is made again, which is said; nothing else is.
int8=$tmp/later/candidates/int8
ok "hashes of files" grep -q "\"sha256\": \"$(sha256sum <"$int8/config.json" | cut -d' ' -f1)\"" "$int8.json"
ok "and sizes" grep -q "\"size\": $(wc -c <"$int8/config.json" | tr -d ' ')," "$int8.json"
cp -r "$int8" "$tmp/intact"
# shellcheck disable=SC2016
damage() # WHAT MESSAGE COMMAND: $int8 is the folder
{
    ok "$1" sh -c "int8='$int8'; $3"
    ok "$1: resume" exits 0 full -o "$tmp/later" --methods int8 --resume
    ok "$1: said" err_has "^int8: .*$2.*: it is made again"
    ok "$1: one is made" err_has '^\[1/1\] int8: made in'
    ok "$1: and measured" err_has '^\[1/1\] int8: accuracy'
    ok "$1: the same model" diff -r "$tmp/intact" "$int8"
}
flip='printf X | dd conv=notrunc bs=1 of='
damage "a changed weight" 'model.sesame-int8 is damaged' "$flip\"\$int8/model.sesame-int8\" seek=9000 2>/dev/null"
damage "a changed tokenizer" 'tokenizer.json is damaged' "$flip\"\$int8/tokenizer.json\" seek=40 2>/dev/null"
damage "a changed config" 'config.json is damaged' "$flip\"\$int8/config.json\" seek=9 2>/dev/null"
damage "an empty file" 'tokenizer.json has 0 bytes' ': >"$int8/tokenizer.json"'
damage "a truncated file" 'model.sesame-int8 has 5000 bytes' 'head -c 5000 "$int8/model.sesame-int8" >"$int8/x" && mv "$int8/x" "$int8/model.sesame-int8"'
damage "a missing file" 'config.json is missing' 'rm "$int8/config.json"'
damage "a file more" 'does not list adapter_config.json' 'echo {} >"$int8/adapter_config.json"'
damage "a missing folder" 'its folder is missing' 'rm -r "$int8"'
damage "a changed score" 'int8.json: damaged: its checksum' 'sed "s/\"score\": [0-9.]*/\"score\": 0.125/" "$int8.json" >"$int8.x" && mv "$int8.x" "$int8.json"'
damage "a null as score" 'int8.json: damaged: its checksum' 'sed "s/\"score\": [0-9.]*/\"score\": null/" "$int8.json" >"$int8.x" && mv "$int8.x" "$int8.json"'
damage "no score" 'int8.json: damaged: its checksum' 'grep -v "\"score\"" "$int8.json" >"$int8.x" && mv "$int8.x" "$int8.json"'
damage "a truncated record" 'int8.json' 'head -c 300 "$int8.json" >"$int8.x" && mv "$int8.x" "$int8.json"'
ok "nothing changed" exits 0 full -o "$tmp/later" --methods int8 --resume
ok "nothing is made" sh -c "! grep -q 'made' '$tmp/err' || grep -q '2 models are made, 0 are left' '$tmp/err'"
cp "$tmp/model/config.json" "$tmp/config.json"
sed 's/{/{ /' "$tmp/config.json" >"$tmp/model/config.json"
ok "another original" exits 3 full -o "$tmp/later" --methods int8 --resume
ok "is refused" err_has 'not the model that the candidates were made of: config.json has .*; restore it, or use --overwrite'
cp "$tmp/config.json" "$tmp/model/config.json"

# Without --eval a tenth of --data is held out; without --output the folder has the name of the model.
own=$(case $sesame in /*) echo "$sesame" ;; *) echo "$PWD/$sesame" ;; esac)
held() { (cd "$tmp" && "$own" compress model --task classify --threads 1 --epochs 1 --texts 4 --rounds 1 "$@"); }
ok "held out" exits 0 held --data train.tsv --max-drop 100 --methods student:1
ok "said" out_has 'Scores are on 8 examples of train.tsv'
ok "in JSON" grep -q '"held_out_examples": 8,' "$tmp/model-compressed/compress.json"
ok "a tenth" test "$(sed 1d "$tmp/model-compressed/data/held-out-train.tsv" | wc -l)" = 8
ok "all rows are in one part" sh -c "cd '$tmp/model-compressed/data' && { sed 1d train-train.tsv; sed 1d held-out-train.tsv; } | sort >../all && sort '$tmp/rows' | cmp - ../all"
ok "training sees the other part" grep -q -- '--train model-compressed/data/train-train.tsv' "$tmp/model-compressed/candidates/student:1.json"
cp -r "$tmp/model-compressed/data" "$tmp/data-before"
ok "no second time" exits 3 held --data train.tsv --methods student:1
ok "but resume" exits 0 held --data train.tsv --max-drop 100 --methods student:1 --resume
ok "the same parts" diff -r "$tmp/data-before" "$tmp/model-compressed/data"
head -9 "$tmp/train.tsv" >"$tmp/few.tsv"
ok "too few" exits 3 held --data few.tsv -o few --methods int8
ok "said" err_has '8 examples are too few to hold out a part'
ok "no folder is left" test ! -e "$tmp/few"
awk 'BEGIN { for (i = 0; i < 30; i++) printf "anna B-PER\nlives O\nin O\n%s B-LOC\n\n", i % 2 ? "paris" : "london" }' >"$tmp/tags.txt"
ok "sentences" exits 0 sh -c "cd '$tmp' && '$own' compress encoder --task tag --data tags.txt -o tagger-compressed --threads 1 --epochs 1 --texts 2 --rounds 1 --methods int8"
ok "stay whole" test "$(grep -c anna "$tmp/tagger-compressed/data/held-out-tags.txt")/$(grep -c lives "$tmp/tagger-compressed/data/train-tags.txt")" = 3/27
awk 'BEGIN { printf "{\"version\": \"1.1\", \"data\": ["; for (i = 0; i < 24; i++) printf "%s{\"title\": \"t\", \"paragraphs\": [{\"context\": \"anna lives in paris .\", \"qas\": [{\"id\": \"q%d\", \"question\": \"who lives in paris ?\", \"answers\": [{\"text\": \"anna\", \"answer_start\": 0}]}]}]}", i ? "," : "", i; print "]}" }' >"$tmp/squad.json"
ok "paragraphs" exits 0 sh -c "cd '$tmp' && '$own' compress encoder --task answer --data squad.json -o squad --threads 1 --epochs 1 --texts 2 --rounds 1 --methods int8"
ok "stay whole" test "$(grep -o '"q[0-9]*"' "$tmp/squad/data/held-out-squad.json" | wc -l)/$(grep -o '"q[0-9]*"' "$tmp/squad/data/train-squad.json" | wc -l)" = 2/22
ok "no data at all" exits 2 held
ok "all options are named" err_has 'give --data FILE (training; .*), --eval FILE, or both'

# Settings of the timing measure again; --overwrite needs a compression.
cp "$tmp/later/candidates/int8/model.sesame-int8" "$tmp/int8-before"
ok "other rounds" exits 0 full -o "$tmp/later" --methods int8 --resume --rounds 2 --texts 4
ok "measured again" err_has '^\[2/2\] int8: accuracy'
ok "not made again" cmp "$tmp/int8-before" "$tmp/later/candidates/int8/model.sesame-int8"
ok "again" exits 0 full -o "$tmp/later" --methods int8 --resume --rounds 2 --texts 4
ok "nothing to measure" sh -c "! grep -q accuracy '$tmp/err'"
ok "other threads" exits 0 full -o "$tmp/later" --methods int8 --resume --rounds 2 --texts 4 --threads 2
mkdir -p "$tmp/mine/model" && echo x >"$tmp/mine/model/file"
ok "another folder" exits 3 full -o "$tmp/mine" --methods int8 --overwrite
ok "said" err_has 'has files but no compress.json'
ok "is kept" test -s "$tmp/mine/model/file"

# A folder that another run has locked stays as it is; --resume waits for a run that ends.
if command -v flock >/dev/null; then
    (flock 9 && touch "$tmp/held" && sleep 4) 9>>"$tmp/later/.lock" &
    while [ ! -e "$tmp/held" ]; do sleep 0.05; done
    ok "locked" exits 3 full -o "$tmp/later" --methods int8 --overwrite
    ok "said" err_has 'locked by another run'
    ok "nothing is removed" test -s "$tmp/later/candidates/int8/model.sesame-int8"
    ok "resume waits" exits 0 full -o "$tmp/later" --methods int8 --resume --rounds 2 --texts 4
    wait
fi
ok "a compression" exits 0 full -o "$tmp/later" --methods int8 --overwrite

# Refusals.
ok "a negative loss" exits 2 full -o "$tmp/x" --max-drop -1
ok "an unknown method" exits 2 full -o "$tmp/x" --methods studnt:0.5
ok "is suggested" err_has 'did you mean .student'
ok "a precision in between" exits 2 full -o "$tmp/x" --methods int8+student:1
ok "said" err_has 'int8 ends a chain: put it last'
ok "a rule without exits" exits 2 full -o "$tmp/x" --methods student:1+exit:0.3
ok "said" err_has 'exit needs exits before it: exits+exit:0.3'
ok "a value too many" exits 2 full -o "$tmp/x" --methods int8:4
for x in prune:2 prune:1 movement:0 zeros:1.5 lowrank:7 student:abc student:1.5 student:0 exits+exit:5 sparse:../x sparse:0x1p-1 \
    heads:-0.5 ffn:1e-1 student: zeros:nan; do
    ok "$x" exits 2 full -o "$tmp/x" --methods int8,$x
    ok "its range" err_has 'expected a number above 0 and '
done
ok "a value too few" exits 2 full -o "$tmp/x" --methods int8,student+f16
ok "no model" exits 3 compress "$tmp/none" --task classify -o "$tmp/x"
ok "no task" exits 2 compress "$tmp/encoder" -o "$tmp/x"
printf 'sentence\nit was good\n' >"$tmp/unlabeled.tsv"
ok "no labels" exits 3 compress "$tmp/model" -o "$tmp/x" --eval "$tmp/unlabeled.tsv"
ok "data without labels" exits 3 compress "$tmp/model" --data "$tmp/unlabeled.tsv" -o "$tmp/x"
ok "another task" exits 3 compress "$tmp/model" --task tag -o "$tmp/x"
ok "is named" err_has 'was trained for the task classify, not tag'
ok "nothing was written" test ! -e "$tmp/x"

echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
