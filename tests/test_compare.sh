#!/bin/sh
# Tests of compare and report.
# Usage: test_compare.sh BUILD_DIR, from the source folder.
. tests/finetune_fixture.sh

tune() # folder, then options
{
    dir=$1
    shift
    # shellcheck disable=SC2086  # several options
    "$sesame" finetune $small --task classify --train "$tmp/train.tsv" --eval "$tmp/dev.tsv" -o "$tmp/$dir" "$@" \
        >/dev/null 2>&1
}
tune one --epochs 3 --bootstrap 50 && tune two --epochs 2 --lr 1e-3 && tune all --grid lr=1e-3,2e-3 --steps 5

ok "compare" exits 0 "$sesame" compare "$tmp/one" "$tmp/two"
ok "settings that differ" out_has '^rank  run  epochs  *lr  *bootstrap  accuracy  *best  at  eval loss  train loss  time  tokens/s  *energy  *FLOPs  loss curve$'
ok "a line per run" test "$(grep -c '^ *\*\?[12]  \(one\|two\)  *[32]\.0 ' "$tmp/out")" -eq 2
ok "the score" out_has "  one .* $(awk -v x="$(score eval_accuracy "$tmp/one/all_results.json")" 'BEGIN { printf "%.4f", x }') "
ok "with UTF-8" exits 0 env LC_ALL=C.UTF-8 "$sesame" compare "$tmp/one"
ok "a sparkline" out_has '█'
ok "as JSON" exits 0 "$sesame" compare "$tmp/one" "$tmp/two" --json
ok "settings" out_has '"run": "two".*"settings": {"epochs": 2.0, "lr": 0.001, "bootstrap": 0}, "metric": "eval_accuracy"'
"$1/json_valid" <"$tmp/out" >/dev/null
ok "valid" test $? -eq 0
ok "a search" exits 0 "$sesame" compare "$tmp/all"
ok "its runs" test "$(grep -c '^ *\*\?[12]  lr=[12]e-3  ' "$tmp/out")" -eq 2
ok "by all its files" exits 0 "$sesame" compare "$tmp"/all/*
ok "the same" test "$(grep -c '^ *\*\?[12]  lr=[12]e-3  ' "$tmp/out")" -eq 2

# Ranks: the metric tells whether lower is better; equal scores share a rank; runs without a score come last.
for run in a:0.5 b:0.75 c:0.75 d:; do
    mkdir -p "$tmp/high/${run%%:*}" "$tmp/low/${run%%:*}"
    for kind in high:f1 low:perplexity; do
        score=${run#*:}
        echo "{\"log_history\": [{\"step\": 1, \"loss\": 2.0${score:+, \"eval_${kind#*:}\": $score}}]}" \
            >"$tmp/${kind%%:*}/${run%%:*}/trainer_state.json"
    done
done
ok "ranks" exits 0 "$sesame" compare "$tmp/high"
ok "the best first" test "$(awk 'NR > 1 && NR < 6 { printf "%s=%s ", $2, $1 }' "$tmp/out")" = 'b=*1 c=*1 a=3 d=- '
ok "lower" exits 0 "$sesame" compare "$tmp/low"
ok "lower first" test "$(awk 'NR > 1 && NR < 6 { printf "%s=%s ", $2, $1 }' "$tmp/out")" = 'a=*1 b=2 c=2 d=- '
ok "two metrics" exits 0 "$sesame" compare "$tmp/low/a" "$tmp/high/a" "$tmp/low/b" --json
ok "apart" test "$(grep -o '"metric": [^,]*\|"rank": [0-9]*' "$tmp/out" | tr -d '\n')" = \
    '"metric": "eval_perplexity""rank": 1"metric": "eval_perplexity""rank": 2"metric": "eval_f1""rank": 1'
if script -qec true /dev/null </dev/null >/dev/null 2>&1; then
    cp -r "$tmp/one" "$tmp/a run with a long name that does not fit into a narrow terminal"
    for width in 40 60 80 120 220; do
        LC_ALL=C.UTF-8 TERM=dumb script -qec "stty cols $width; '$sesame' compare '$tmp/one' '$tmp/two' '$tmp'/a*name*" \
            /dev/null </dev/null >"$tmp/out"
        ok "fits $width columns" test "$(tr -d '\r' <"$tmp/out" | LC_ALL=C.UTF-8 wc -L)" -le $width
        ok "with the score" out_has 'accuracy'
        ok "marks the best" out_has '^ *\*1  '
    done
    ok "everything in a wide one" sh -c "! grep -q 'do not fit' '$tmp/out'"
fi

# Runs of the transformers Trainer have no run.json, killed runs have no results; logs may repeat steps and be truncated.
mkdir "$tmp/theirs" "$tmp/dead" "$tmp/nothing"
echo '{"log_history": [{"step": 1, "epoch": 0.5, "loss": 2.0}, {"step": 2, "loss": 1.0}, {"step": 2, "eval_f1": 0.25,
    "eval_loss": 1.5, "eval_runtime": 3}]}' >"$tmp/theirs/trainer_state.json"
printf '%s\n' '{"step": 1, "loss": 2.5}' '{"step": 2, "loss": 9}' 'not json' '{"step": 2, "loss": 1.5}' >"$tmp/dead/log.jsonl"
printf '{"step": 3, "lo' >>"$tmp/dead/log.jsonl"
ok "other runs" exits 0 "$sesame" compare "$tmp/theirs" "$tmp/dead" --json
ok "transformers" out_has '"run": "theirs".*"metric": "eval_f1", "score": 0.25, "best": 0.25, "best_step": 2.0'
ok "killed" out_has '"run": "dead", .*"metric": null, "score": null'
ok "not a run" exits 3 "$sesame" compare "$tmp/nothing"
ok "error message" err_has 'nothing: not a training run'
ok "no folder" exits 3 "$sesame" compare "$tmp/nowhere"
echo '{"log_history": 3}' >"$tmp/nothing/trainer_state.json"
ok "an unusual state" exits 0 "$sesame" compare "$tmp/nothing"
echo '{' >"$tmp/nothing/trainer_state.json"
ok "a damaged state" exits 3 "$sesame" compare "$tmp/nothing"
ok "its location" err_has 'nothing/trainer_state.json: line 2'

cp -r "$tmp/one" "$tmp/odd"
echo '{"options": [1], "metric": 3}' >"$tmp/odd/run.json"
ok "malformed options" exits 0 "$sesame" compare "$tmp/odd" "$tmp/two"
ok "in a report" exits 0 "$sesame" report "$tmp/odd" "$tmp/two" -o "$tmp/odd-options.html"
echo '[1]' >"$tmp/odd/all_results.json"
ok "malformed results" exits 3 "$sesame" compare "$tmp/odd" "$tmp/two"
ok "its file" err_has 'odd/all_results.json: an object expected, not an array'

# The page is self-contained and escaped.
ok "finetune writes a report" test -s "$tmp/one/report.html"
ok "report" exits 0 "$sesame" report "$tmp/one" "$tmp/two" -o "$tmp/page.html"
ok "does not overwrite" exits 3 "$sesame" report "$tmp/one" -o "$tmp/page.html"
ok "--overwrite" exits 0 "$sesame" report "$tmp/one" "$tmp/two" -o "$tmp/page.html" --overwrite
for what in 'Training loss' 'Evaluation loss' 'Learning rate' 'Gradient norm' 'Evaluation: accuracy'; do
    ok "a chart: $what" grep -q "<figcaption>$what</figcaption>" "$tmp/page.html"
done
ok "axes with units" test "$(grep -o 'class="d m">updates<' "$tmp/page.html" | wc -l)" -eq 5
ok "the unit of the loss" grep -q 'class="d">cross-entropy loss (nats)<' "$tmp/page.html"
ok "values of a smoothed line" test "$(grep -o 'class="l r s' "$tmp/page.html" | wc -l)" -eq 2
ok "both color schemes" grep -q 'prefers-color-scheme:dark' "$tmp/page.html"
ok "phones" grep -q 'name="viewport" content="width=device-width' "$tmp/page.html"
ok "the best run first" sh -c "grep 'class=\"key\"' '$tmp/page.html' | head -1 | grep -q 'one (best)<'"
ok "the meaning of the matrix" grep -q '>rows: true label, columns: predicted</text>' "$tmp/page.html"
for next in "sesame text-classification --model $tmp/one 'some text'" "sesame predict $tmp/one $tmp/dev.tsv --task classify" \
    "sesame eval $tmp/one $tmp/dev.tsv --task classify --bootstrap 1000" \
    "sesame quantize $tmp/one $tmp/one-int8 --dtype int8 --task classify --eval $tmp/dev.tsv" \
    "--output $tmp/one-search .* --grid lr=0.0015,0.003,0.006"; do
    ok "a command: $next" sh -c "sed \"s/&#39;/'/g\" '$tmp/page.html' | grep -q -- \"<code>.*$next\""
done
# The suggested commands work.
for line in predict eval; do
    sed -n "s/.*<code>sesame \($line [^<]*\)<.code>.*/\1/p" "$tmp/one/report.html" >"$tmp/next"
    # shellcheck disable=SC2046  # words of a command
    ok "$line works" exits 0 "$sesame" $(cat "$tmp/next")
done
# Worst errors: an evaluation with wrong labels.
sed '2,5s/\(neg\|pos\)$/x&/; s/xneg$/pos/; s/xpos$/neg/; 2s/^/<b>/' "$tmp/dev.tsv" >"$tmp/wrong.tsv"
# shellcheck disable=SC2086
ok "a run with errors" exits 0 "$sesame" finetune $small --task classify --train "$tmp/train.tsv" --eval "$tmp/wrong.tsv" \
    --epochs 3 -o "$tmp/errors"
ok "errors of the evaluation" grep -q '"errors": [1-9]' "$tmp/errors/eval_errors.json"
"$1/json_valid" <"$tmp/errors/eval_errors.json" >/dev/null
ok "valid JSON" test $? -eq 0
ok "their number" grep -q '[1-9][0-9]* of 20 examples of wrong.tsv are wrong' "$tmp/errors/report.html"
ok "their texts" grep -q '>&lt;b&gt;the film was bad .</td>' "$tmp/errors/report.html"
ok "their labels" grep -q \
    'class="good" data-label="true">pos<.*class="bad" data-label="predicted">neg<.*data-label="probability">0\.[0-9]*<.*data-label="line">2<' \
    "$tmp/errors/report.html"
ok "by probability" sh -c "sed -n 's/^ *\"score\": \([0-9.]*\)$/\1/p' '$tmp/errors/eval_errors.json' | sort -rnc"
ok "two lines each" test "$(grep -o 'class="l s' "$tmp/page.html" | wc -l)" -eq 14
ok "score against FLOPs" grep -q '>Score against FLOPs: accuracy<.*>1e[0-9]* FLOPs of training<' "$tmp/page.html"
ok "score against time" grep -q '>Score against time: accuracy<.*>seconds of training<' "$tmp/page.html"
ok "FLOPs" grep -q '<dt>FLOPs</dt><dd>[0-9.]*e[0-9]*</dd><dd class="more">[0-9.]*e[0-9]* per second</dd>' "$tmp/page.html"
ok "no price" sh -c "! grep -q '>price<' '$tmp/page.html'"
ok "matrices" test "$(grep -c 'aria-label="Confusion matrix"' "$tmp/page.html")" -eq 2
ok "intervals" grep -q 'accuracy</td><td class="n">1.0000</td><td class="n">1.0000–1.0000' "$tmp/page.html"
ok "no script, no link, no address" sh -c "! grep -qi '<script\|<link\|<img\|http:\|https:\|url(\|@import' '$tmp/page.html'"
mkdir "$tmp/<b>&\"x\"" && cp "$tmp/one/log.jsonl" "$tmp/<b>&\"x\""
sed 's/"neg"/"<i>\&neg"/; s/"command": "/&<u>/' "$tmp/one/all_results.json" >"$tmp/<b>&\"x\"/all_results.json"
sed 's/"command": "/&<u>/' "$tmp/one/run.json" >"$tmp/<b>&\"x\"/run.json"
ok "odd names" exits 0 "$sesame" report "$tmp/<b>&\"x\"" -o "$tmp/odd.html"
ok "escaped" sh -c "! grep -q '<b>\|<i>\|<u>' '$tmp/odd.html'"
ok "escaped name" grep -q '&lt;b&gt;&amp;&quot;x&quot;' "$tmp/odd.html"
# A price.
cp -r "$tmp/one" "$tmp/priced"
sed 's|"train_energy_source": .*|&\n"train_price": 12.5,|' "$tmp/one/all_results.json" >"$tmp/priced/all_results.json"
ok "a run with a price" exits 0 "$sesame" report "$tmp/priced" "$tmp/two" -o "$tmp/price.html"
ok "is shown" grep -q '<dt>price</dt><dd>12.5</dd>' "$tmp/price.html"
ok "in the table" grep -q '<th class="n" scope="col">price</th>' "$tmp/price.html"
ok "in the comparison" exits 0 "$sesame" compare "$tmp/priced" "$tmp/two" --json
ok "as a number" out_has '"train_price": 12.5'
# Energy of CPU and GPU.
cp -r "$tmp/one" "$tmp/gpu"
sed 's|"train_energy_source": .*|"train_energy_cpu_kwh": 0.001, "train_energy_gpu_kwh": 0.01, "train_energy_source": "RAPL: package-0; NVML: GPU x",|' \
    "$tmp/one/all_results.json" >"$tmp/gpu/all_results.json"
ok "a run on a GPU" exits 0 "$sesame" report "$tmp/gpu" -o "$tmp/gpu.html"
ok "parts of the energy" grep -q 'Energy: CPU 1 Wh, GPU 10 Wh; RAPL: package-0; NVML: GPU x' "$tmp/gpu.html"
sed 's|"train_energy_source": .*|"train_energy_source": "estimate; the GPU is not included: libnvidia-ml.so.1 is missing",|' \
    "$tmp/one/all_results.json" >"$tmp/gpu/all_results.json"
ok "a GPU that is not counted" exits 0 "$sesame" report "$tmp/gpu" -o "$tmp/gpu.html" --overwrite
ok "is stated" grep -q 'the GPU is not included: libnvidia-ml.so.1 is missing' "$tmp/gpu.html"
ok "runs without curves" exits 0 "$sesame" report "$tmp/dead" "$tmp/theirs" -o "$tmp/bare.html"
ok "no chart of one point" sh -c "! grep -q 'Evaluation loss' '$tmp/bare.html'"
ok "well formed" sh -c "awk 'BEGIN { RS = \"<\" } /^svg|^table|^g |^div/ { n++ } /^\/(svg|table|g|div)>/ { n-- } END { exit n }' '$tmp/page.html'"

echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
