#!/bin/sh
# ablate: recipes, tasks with seeds, files, jobs side by side, resume, interruption, failures, refusals.
# Usage: test_ablate.sh BUILD_DIR, from the source folder.
. tests/finetune_fixture.sh

# Learnable sentences, a corpus, minimal pairs: each word determines the next one.
awk 'BEGIN { srand(1); for (i = 0; i < 600; i++) { w = int(rand() * 20); s = ""
    for (j = 0; j < 4 + i % 9; j++) { s = s " w" w; w = (w * 7 + 3) % 20 } print s; if (i % 6 == 5) print "" } }' >"$tmp/text"
awk 'BEGIN { srand(3); print "sentence\tlabel"; for (i = 0; i < 80; i++) { w = int(rand() * 20)
    print "w" w " w" (w * 7 + 3) % 20 "\t" (w % 2 ? "odd" : "even") } }' >"$tmp/odd.tsv"
awk 'BEGIN { print "good\tbad\tparadigm"; for (w = 0; w < 20; w++) print "w" w " w" (w * 7 + 3) % 20 "\tw" w " w" w "\tx" }' >"$tmp/pairs.tsv"
"$sesame" train-tokenizer --type wordpiece --vocab-size 80 -q -o "$tmp/t.json" "$tmp/text" || exit 1
"$sesame" corpus build --tokenizer "$tmp/t.json" --held-out 10% -o "$tmp/c" "$tmp/text" >"$tmp/out" || exit 1
size='"hidden_size=16", "num_hidden_layers=1", "num_attention_heads=2", "intermediate_size=16"'
common="\"common\": {\"corpus\": \"$tmp/c\", \"tokenizer\": \"$tmp/t.json\", \"preset\": \"bert-tiny\", \"steps\": 4,
  \"save-every\": -1, \"set\": [$size]}"
ablate() { "$sesame" ablate "$tmp/recipe.json" --threads 2 "$@"; }
recipe() { printf '%s\n' "$1" >"$tmp/recipe.json"; }
values() { sed -n "/\"$1\": {/,/}/p" "$2" | tr -d '\n ' | grep -o '"values":\[[^]]*\]'; } # of a column in ablate.json

# Pretraining alone: two runs by two values, finished runs are skipped.
recipe "{$common, \"runs\": {\"static\": {\"mask-copies\": 10}, \"dynamic\": {}}, \"grid\": {\"mask-rate\": [0.15, 0.4]}}"
ok "a grid" exits 0 ablate -o "$tmp/grid"
ok "its rows" out_has '^static mask-rate=0.15 '
ok "its columns" out_has 'mlm_accuracy'
ok "again" exits 0 ablate -o "$tmp/grid" --json
ok "all rows" out_has '"run": "dynamic mask-rate=0.4"'
ok "none runs again" err_has '^4 jobs: 4 finished before, 0 left'
ok "JSON" eval "\"$build/json_valid\" <\"$tmp/out\" >/dev/null"
recipe "{$common, \"runs\": {\"static\": {\"mask-copies\": 5}, \"dynamic\": {}}, \"grid\": {\"mask-rate\": [0.15, 0.4]}}"
ok "other options" exits 3 ablate -o "$tmp/grid"
ok "are named" err_has 'static mask-rate=0.15: finished with other options, see '
ok "--overwrite" exits 0 ablate -o "$tmp/grid" --overwrite --only 'static mask-rate=0.4'
ok "one run" test "$(grep -c '"run"' "$tmp/grid/ablate.json")" = 1

# Tasks: fine-tuning with seeds, minimal pairs, a model without pretraining.
tasks="\"tune\": {\"lr\": 3e-3, \"batch-size\": 8}, \"seeds\": 3,
 \"tasks\": {\"odd\": {\"task\": \"classify\", \"train\": \"$tmp/odd.tsv\", \"eval\": \"$tmp/odd.tsv\", \"epochs\": 2},
  \"f1\": {\"task\": \"classify\", \"train\": \"$tmp/odd.tsv\", \"eval\": \"$tmp/odd.tsv\", \"epochs\": 1, \"score\": \"f1\"},
  \"pairs\": {\"command\": \"eval\", \"task\": \"blimp\", \"data\": [\"$tmp/pairs.tsv\"], \"score\": \"accuracy\"}}"
recipe "{\"title\": \"Two masks\", \"source\": \"a paper\", $common, $tasks,
 \"runs\": {\"static\": {\"mask-copies\": 2}, \"dynamic\": {\"tune\": {\"epochs\": 1}}},
 \"scores\": [\"mlm_loss\"], \"published\": {\"static\": {\"odd\": 60, \"mean\": 61.5}, \"dynamic\": {\"odd\": 70, \"mean\": 60}}}"
ok "a plan" exits 0 ablate -o "$tmp/a" --plan
ok "its jobs" test "$(grep -c '^sesame ' "$tmp/out")" = 16
ok "a task" out_has "^sesame finetune --lr=0.003 --batch-size=8 --task=classify --train=$tmp/odd.tsv --eval=$tmp/odd.tsv --epochs=1 --seed=2 --model=$tmp/a/dynamic --output=$tmp/a/dynamic,tasks/odd,seed=2 "
ok "minimal pairs" out_has "^sesame eval $tmp/a/static $tmp/pairs.tsv --task=blimp --json"
ok "nothing was made" test ! -e "$tmp/a"
ok "one at a time" exits 0 ablate -o "$tmp/a"
ok "all jobs" err_has '^\[16/16\] dynamic: pairs: accuracy [01]\.'
ok "means and published numbers" out_has '^static .* +-.* 60 .* +-.* 61.5$'
ok "medians" out_has '^static  *odd  *[0-9.]*  *[0-9.]* .* to .* 3$'
ok "the order" out_has '^odd  *2  .*\(order\|noise\|differs\)'
ok "the source" out_has 'Published numbers: a paper'
for f in ablate.json ablate.md ablate.svg ablate.html; do ok "$f" test -s "$tmp/a/$f"; done
ok "JSON" eval "\"$build/json_valid\" <\"$tmp/a/ablate.json\" >/dev/null"
ok "a Markdown table" grep -q '^| run | mlm_loss | odd | published | f1 | pairs | mean | published |$' "$tmp/a/ablate.md"
ok "its intervals" grep -q 'half the 95 % interval of the mean over 3 fine-tuning seeds of one' "$tmp/a/ablate.md"
ok "a picture" grep -q '<svg.*<title>Two masks' "$tmp/a/ablate.svg"
ok "a page" grep -q '<h1>Two masks' "$tmp/a/ablate.html"
ok "pretrained models stay" test -s "$tmp/a/static/model.safetensors"
ok "fine-tuned ones and checkpoints do not" test -z "$(find "$tmp/a" -name 'checkpoint*' -o -path '*tasks*' -name '*.safetensors')"

# A job is a run of the command.
ok "the same run" exits 0 "$sesame" finetune -m "$tmp/a/static" --lr 3e-3 --batch-size 8 --task classify --train "$tmp/odd.tsv" --eval "$tmp/odd.tsv" \
    --epochs 2 --seed 2 -o "$tmp/same"
ok "the same score" test "$(score eval_accuracy "$tmp/same/all_results.json")" = "$(score eval_accuracy "$tmp/a/static,tasks/odd,seed=2/job.json")"

# Side by side: the same scores.
ok "three at a time" exits 0 ablate -o "$tmp/b" --jobs 3
for c in mlm_loss odd f1 pairs mean; do
    ok "$c is the same" test "$(values $c "$tmp/a/ablate.json")" = "$(values $c "$tmp/b/ablate.json")"
    ok "$c has values" test -n "$(values $c "$tmp/a/ablate.json")"
done

# More seeds, fewer tasks, kept models.
ok "a fourth seed" exits 0 ablate -o "$tmp/a" --seeds 4 --tasks odd --keep-models
ok "two jobs" err_has '^10 jobs: 8 finished before, 2 left'
ok "their models" test -s "$tmp/a/static,tasks/odd,seed=4/model.safetensors"

# Runs of some tasks.
recipe "{$common, $tasks, \"runs\": {\"all\": {}, \"some\": {\"tasks\": [\"odd\"]}, \"none\": {\"tasks\": []},
 \"given\": {\"model\": \"all\", \"pretrain\": false, \"tasks\": [\"pairs\"]}}, \"published\": {\"some\": {\"f1\": 50}}}"
ok "some tasks" exits 0 ablate -o "$tmp/some" --seeds 1
ok "their jobs" err_has '^\[8/8\] given: pairs: accuracy '
ok "all cells" out_has '^all  *[0-9][0-9.]*  *[0-9][0-9.]*  *-  *[0-9][0-9.]*  *[0-9][0-9.]*$'
ok "no f1, no mean" out_has '^some  *[0-9][0-9.]*  *-  *50  *-  *-$'
ok "none" out_has '^none  *-  *-  *-  *-  *-$'
ok "without pretraining" out_has '^given  *-  *-  *-  *[0-9][0-9.]*  *-$'
ok "columns of all runs" test "$(grep -c '^ *"\(odd\|f1\|pairs\|mean\)": {$' "$tmp/some/ablate.json")" = 10 # 3 in the recipe, 6 scores, a published number
ok "a published number alone" test "$(tr -d ' \n' <"$tmp/some/ablate.json" | grep -o '"f1":{"published":50.0}' | wc -l)" = 1
ok "rows of a plot" test "$(grep -o '>some<' "$tmp/some/ablate.svg" | wc -l)" = 1
ok "fewer" exits 0 ablate -o "$tmp/some" --seeds 1 --tasks f1,pairs --plan
ok "both selections" test "$(grep -c 'sesame finetune' "$tmp/out")" = 1

# Pretraining seeds, a model without pretraining, random weights, {model}.
recipe "{$common, $tasks, \"seeds\": [5], \"pretrain-seeds\": [7, 8], \"runs\": {\"p\": {},
 \"given\": {\"model\": \"$tmp/a/static\", \"pretrain\": false},
 \"random\": {\"pretrain\": false, \"tune\": {\"config\": \"bert-tiny\", \"tokenizer\": \"$tmp/t.json\", \"set\": [$size]}},
 \"embedded\": {\"tune\": {\"epochs\": 1}}}}"
sed -i 's/"seeds": 3,//' "$tmp/recipe.json"
ok "two models" exits 0 ablate -o "$tmp/p" --tasks odd
ok "the second" test -s "$tmp/p/p,seed=8/model.safetensors"
ok "its task" test -s "$tmp/p/p,seed=8,tasks/odd,seed=5/job.json"
ok "its seed" grep -q -- '--seed=8' "$tmp/p/p,seed=8/job.json"
ok "the interval is over models" out_has '^p  *odd .* to .* 2$'
ok "their notes" grep -q 'over 2 pretrained models .* Rows of one given model: over the fine-tuning seeds' "$tmp/p/ablate.md"
ok "without pretraining" out_has '^given  *[0-9]'
ok "random weights" out_has '^random  *[0-9]'

# A run that starts from another: its tasks alone, more pretraining, a student; scores against FLOPs; curves of a grid.
recipe "{$common, $tasks, \"runs\": {\"first run\": {}, \"again\": {\"pretrain\": false, \"model\": \"first run\", \"tune\": {\"freeze\": 0}},
 \"path\": {\"pretrain\": false, \"model\": \"$tmp/from/first-run\"}, \"more\": {\"preset\": null, \"set\": null, \"model\": \"first run\"},
 \"student\": {\"preset\": null, \"set\": null, \"teacher\": \"first run\", \"student-layers\": 1}}}"
ok "its plan" exits 0 ablate -o "$tmp/from" --tasks odd,pairs --plan
ok "more pretraining" out_has "^sesame pretrain .*--model=$tmp/from/first-run .*--output=$tmp/from/more "
ok "a student" out_has "^sesame pretrain .*--teacher=$tmp/from/first-run .*--output=$tmp/from/student "
ok "tasks" out_has "^sesame finetune .*--freeze=0 .*--model=$tmp/from/first-run --output=$tmp/from/again,tasks/odd,seed=1 "
ok "from others" exits 0 ablate -o "$tmp/from" --tasks odd,pairs --jobs 3
ok "the same model" test "$(score eval_accuracy "$tmp/from/path,tasks/pairs/job.json")" = "$(score eval_accuracy "$tmp/from/first-run,tasks/pairs/job.json")"
ok "the model of the other" test "$(score eval_mlm_loss "$tmp/from/more/job.json")" != "$(score eval_mlm_loss "$tmp/from/first-run/job.json")"
n=1
for r in first-run more student; do
    n=$((n + 1))
    sed "s/\"train_flops\": [^,]*/\"train_flops\": ${n}e15/; s/\"results\": {/&\"train_price\": 0.$n,/" "$tmp/from/$r/job.json" >"$tmp/x" && cp "$tmp/x" "$tmp/from/$r/job.json"
    sed 's/^  },$/  }/; /^  "checksum"/d' "$tmp/x" >"$tmp/from/$r/job.json" # as older versions wrote it
done
ok "costs" exits 0 ablate -o "$tmp/from" --tasks odd,pairs
ok "columns" out_has '^run  *pretraining .* FLOPs .* price '
ok "of a run" out_has '^student .* 4e+15 .* 0.4 '
ok "a plot" grep -q 'against pretraining FLOPs' "$tmp/from/ablate-flops.svg"
recipe "{$common, \"runs\": {\"a\": {}, \"b\": {\"mask-unit\": \"word\"}}, \"grid\": {\"mask-rate\": [0.1, 0.2, 0.4]}, \"scores\": [\"mlm_loss\"]}"
ok "curves" exits 0 ablate -o "$tmp/lines" --jobs 2
ok "two lines" test "$(grep -o 'class="l s[01]"' "$tmp/lines/ablate.svg" | sort -u | wc -l)" = 2

# Ctrl-C: children save checkpoints; the same command continues and gives the same scores.
recipe "{$common, $tasks, \"runs\": {\"long\": {\"steps\": 300}, \"short\": {}}}"
ablate -o "$tmp/whole" --jobs 2 --tasks odd,f1 >"$tmp/out" 2>"$tmp/err"
"$sesame" ablate "$tmp/recipe.json" --threads 2 -o "$tmp/part" --jobs 2 --tasks odd,f1 >"$tmp/out" 2>"$tmp/err" &
pid=$!
n=0
while [ ! -s "$tmp/part/long/log.jsonl" ] && [ $n -lt 200 ]; do n=$((n + 1)); sleep 0.05; done
kill -TERM $pid
wait $pid
ok "code of the signal" test $? = 143
ok "its message" err_has '^stopped; the same command continues'
ok "not finished" test ! -e "$tmp/part/long/job.json"
ok "continue" exits 0 ablate -o "$tmp/part" --jobs 2 --tasks odd,f1
for c in odd f1; do
    ok "$c as without interruption" test "$(values $c "$tmp/part/ablate.json")" = "$(values $c "$tmp/whole/ablate.json")"
done
# A job whose record has changed is run again.
task=$(find "$tmp/part" -name 'job.json' -path '*odd*' | head -1)
cp "$task" "$tmp/x"
sed 's/"eval_accuracy": [0-9.]*/"eval_accuracy": 0.125/' "$tmp/x" >"$task"
ok "a changed score" exits 0 ablate -o "$tmp/part" --jobs 2 --tasks odd,f1
ok "is said" err_has 'job.json: damaged: .*: the job is run again'
ok "and repeated" test "$(score eval_accuracy "$task")" = "$(score eval_accuracy "$tmp/x")"
# Killed: the children stop, too. They hold the locks of their folders until their checkpoints are saved.
"$sesame" ablate "$tmp/recipe.json" --threads 2 -o "$tmp/killed" --tasks odd --seeds 1 >"$tmp/out" 2>"$tmp/err" &
pid=$!
n=0
while [ ! -s "$tmp/killed/long/log.jsonl" ] && [ $n -lt 200 ]; do n=$((n + 1)); sleep 0.05; done
kill -KILL $pid
wait $pid
n=0
until exits 0 ablate -o "$tmp/killed" --tasks odd --seeds 1 >/dev/null || [ $n -ge 20 ]; do n=$((n + 1)); sleep 0.3; done
ok "after a kill" test "$(score eval_mlm_loss "$tmp/killed/long/job.json")" = "$(score eval_mlm_loss "$tmp/whole/long/job.json")"
# A checkpoint of other options is not continued.
rm -r "$tmp/killed/long/job.json"
mkdir -p "$tmp/killed/long/checkpoint-7"
sed -i 's/"steps": 300/"steps": 3/' "$tmp/recipe.json"
ok "other options" exits 0 ablate -o "$tmp/killed" --tasks odd --seeds 1 --only long
ok "start again" test "$(tail -1 "$tmp/killed/long/times.jsonl" | grep -c '"step": 3[,}]')" = 1
ok "and their tasks" err_has '^2 jobs: 0 finished before, 2 left'
sed -i 's/"steps": 3}/"steps": 300}/' "$tmp/recipe.json"
rm -r "$tmp/part/short,tasks/odd,seed=2"
ok "a lost job" exits 0 ablate -o "$tmp/part" --tasks odd,f1
ok "runs again" err_has '^14 jobs: 13 finished before, 1 left'

# A model that is made again for some of its tasks: the others do not keep the scores of the old one.
recipe "{$common, $tasks, \"runs\": {\"a\": {}, \"later\": {\"pretrain\": false, \"model\": \"a\"}}}"
ok "two tasks" exits 0 ablate -o "$tmp/stale" --tasks odd,pairs --seeds 1
sed -i 's/"steps": 4/"steps": 5/' "$tmp/recipe.json"
ok "the model again, one task" exits 0 ablate -o "$tmp/stale" --tasks pairs --seeds 1 --only a --overwrite
ok "a plan" exits 0 ablate -o "$tmp/stale" --tasks odd,pairs --seeds 1 --plan
ok "removes nothing" test -s "$tmp/stale/later,tasks/pairs/job.json"
ok "the other tasks" exits 0 ablate -o "$tmp/stale" --tasks odd,pairs --seeds 1
ok "run again" err_has '^5 jobs: 2 finished before, 3 left'
ok "once" exits 0 ablate -o "$tmp/stale" --tasks odd,pairs --seeds 1
ok "then they stay" err_has '^5 jobs: 5 finished before, 0 left'
# A job that ended before its log began has a folder of its own, too.
rm "$tmp/stale/a,tasks/pairs/"*
echo '{}' >"$tmp/stale/a,tasks/pairs/start.json"
ok "a job without a log" exits 0 ablate -o "$tmp/stale" --tasks odd,pairs --seeds 1
ok "runs again" err_has '^5 jobs: 4 finished before, 1 left'

# A failed job is reported and does not stop the others.
recipe "{$common, $tasks, \"runs\": {\"good\": {}, \"bad\": {\"objective\": \"tea\"}}}"
ok "one fails" exits 1 ablate -o "$tmp/f" --tasks pairs
ok "why" err_has '^\[2/4\] bad: .*unknown objective "tea"'
ok "how many" err_has '^sesame: 2 of 4 jobs failed'
ok "its row" out_has '^bad  *failed$'
ok "the other row" out_has '^good  *[0-9]'
sed -i 's/"tea"/"clm"/' "$tmp/recipe.json"
ok "corrected" exits 0 ablate -o "$tmp/f" --tasks pairs
ok "only what failed" err_has '^4 jobs: 2 finished before, 2 left'
ok "an axis without intervals" test -z "$(grep -o ">100<" "$tmp/f/ablate.svg")"
recipe "{$common, \"runs\": {\"a\": {}}, \"tasks\": {\"x\": {\"task\": \"blimp\", \"data\": \"$tmp/pairs.tsv\", \"score\": \"bleu\"}}}"
ok "no such score" exits 1 ablate -o "$tmp/g"
ok "is named" err_has 'no score "bleu" among the results: accuracy, pairs_accuracy'

recipe "{$common, \"scores\": [\"mlm_acuracy\"], \"runs\": {\"a\": {}}}"
ok "a misspelled score" exits 0 ablate -o "$tmp/h"
ok "is noted" out_has 'No run has the score "mlm_acuracy"'
# Failures reach runs that start from a failed one, and their tasks.
recipe "{$common, $tasks, \"runs\": {\"a\": {\"objective\": \"tea\"}, \"b\": {\"preset\": null, \"set\": null, \"model\": \"a\"}}}"
ok "a chain" exits 1 ablate -o "$tmp/chain" --tasks pairs
ok "all fail" err_has '^sesame: 4 of 4 jobs failed'
ok "in the table" out_has '^b  *failed$'

# Refusals, before anything runs.
refuses() { recipe "$1"; ok "$1" exits "$2" ablate -o "$tmp/none"; ok "$1: $3" err_has "$3"; ok "nothing was made" test ! -e "$tmp/none"; }
for r in '[1, 2]' '{"runs": [1]}' '{"grid": [[1]]}' '{"common": [1], "runs": {"a": {}}}' '{"runs": {"a": 3}}' '{"runs": {"a": {}}, "tasks": {"x": 1}}'; do
    refuses "$r" 3 'object'
done
refuses '{"common": {}, "run": {}}' 3 "unknown key \"run\"; expected common, runs, .*; did you mean 'runs'"
refuses '{"runs": {"a b": {}, "a-b": {}}}' 3 'runs "a b" and "a-b" have the same folder, a-b'
refuses '{"common": {"copus": "x"}, "runs": {"a": {}}}' 3 "recipe.json: \"common\": sesame pretrain has no option \"copus\"; did you mean 'corpus'"
refuses "{$common, \"runs\": {\"a\": {\"steps\": \"many\"}}}" 2 'recipe.json: a: --steps'
refuses "{$common, \"runs\": {\"a\": {\"corpus\": \"$tmp/lost.ids\"}}}" 3 "run \"a\": \"corpus\": $tmp/lost.ids: no such file"
refuses "{$common, \"runs\": {\"a\": {\"output\": \"x\"}}}" 3 '"output" is set by sesame ablate itself'
refuses "{$common, \"runs\": {\"a\": {\"tokenizer\": \"$tmp/lost/t.json\"}}}" 3 "\"tokenizer\": $tmp/lost/t.json: no such file"
refuses "{$common, \"runs\": {\"a\": {}}, \"tasks\": {\"x\": {\"task\": \"classify\", \"train\": \"$tmp/lost.tsv\"}}}" 3 "task \"x\": \"train\": $tmp/lost.tsv: no such file"
refuses "{$common, \"runs\": {\"a\": {}}, \"tasks\": {\"x\": {\"task\": \"clasify\", \"train\": \"$tmp/odd.tsv\"}}}" 2 'clasify'
refuses "{$common, \"runs\": {\"a\": {}}, \"tasks\": {\"x\": {\"task\": \"blimp\"}}}" 3 'expected "data"'
refuses "{$common, \"runs\": {\"a\": {}}, \"tasks\": {\"x\": {\"command\": \"serve\"}}}" 3 'expected finetune, eval or perplexity'
refuses "{$common, \"runs\": {\"a\": {\"tune\": {\"epoch\": 1}}}, \"tasks\": {\"x\": {\"task\": \"classify\", \"train\": \"$tmp/odd.tsv\"}}}" 3 "run \"a\": \"tune\": sesame finetune has no option \"epoch\"; did you mean 'epochs'"
refuses "{$common, $tasks, \"runs\": {\"a b\": {\"tasks\": [\"odd\", \"pair\"]}}}" 3 "recipe.json: \"runs\": \"a b\": \"tasks\": \"pair\" is not a name in \"tasks\" of the recipe; did you mean 'pairs'"
refuses "{$common, \"runs\": {\"a\": {\"tasks\": [\"odd\"]}}}" 3 '"odd" is not a name in "tasks" of the recipe$'
recipe "{$common, $tasks, \"runs\": {\"a\": {\"tasks\": null}}}"
ok "null: all tasks" exits 0 ablate -o "$tmp/null" --plan
that "tasks of null" 'grep -q odd "$tmp/out"'
for r in '"odd"' '{"odd": 1}' '[1]'; do refuses "{$common, $tasks, \"runs\": {\"a\": {\"tasks\": $r}}}" 3 '"runs": "a": .*tasks.*an array of names of tasks'; done
refuses "{$common, $tasks, \"runs\": {\"a\": {\"pretrain\": false, \"tasks\": []}}}" 3 '"runs": "a": "tasks" is empty: a run without pretraining needs a task'
refuses "{$common, $tasks, \"runs\": {\"a\": {\"pretrain\": false, \"tasks\": [\"pairs\"]}}}" 3 '"runs": "a": "tasks": "pairs" evaluates a model, and the run has random weights'
refuses "{$common, \"runs\": {\"a\": {\"pretrain\": false, \"steps\": 3}}}" 3 'has "model", "tune" and "tasks" only'
refuses "{$common, \"runs\": {\"a\": {}}, \"tasks\": {\"x|y\": {\"task\": \"blimp\", \"data\": \"$tmp/pairs.tsv\"}}}" 3 'not a name of a task'
for r in '"mlm_loss"' '{"a": "mlm_loss"}' '[1]' '["a|b"]' '["1","2","3","4","5","6","7","8","9","10","11","12","13"]'; do
    refuses "{$common, \"runs\": {\"a\": {}}, \"scores\": $r}" 3 '"scores": expected an array of at most 12 names'
done
refuses "{$common, \"runs\": {\"a\": {}}, \"seeds\": 0}" 3 '"seeds": expected a number from 1'
refuses "{$common, \"runs\": {\"a\": {}}, \"published\": {\"b\": {}}}" 3 '"published": no run is named "b"'
refuses "{$common, \"runs\": {\"a\": {}}, \"mean\": [\"x\"]}" 3 '"mean": "x" is not a name in "tasks"'
recipe "{$common, \"runs\": {\"a\": {}}}"
ok "no such run" exits 2 ablate -o "$tmp/none" --only b
ok "another study's folder" mkdir -p "$tmp/own/a"
echo x >"$tmp/own/a/file"
ok "is not used" exits 3 ablate -o "$tmp/own" --overwrite
ok "its message" err_has 'has files but no job.log'
ok "and stays" test -s "$tmp/own/a/file"
ok "--set" exits 0 ablate -o "$tmp/set" --set steps=2
ok "is used" grep -q -- '--steps=2' "$tmp/set/a/job.json"
ok "a list" exits 0 ablate -o "$tmp/set2" --plan --set set=x=1 --set set=y=2 --set tune.lr=1
ok "grows" out_has '--set=intermediate_size=16 --set=x=1 --set=y=2'
ok "no value" exits 2 ablate -o "$tmp/set2" --plan --set steps
ok "a type" exits 2 ablate -o "$tmp/set2" --plan --dtype int8
counted
