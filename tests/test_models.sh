#!/bin/sh
# Models by name: search path, error messages, adapters of quantized models; and, if the source folder has the bundled
# models, that they load and give sensible results.
set -u
. tests/counted.sh
case $build in /*) ;; *) build=$PWD/$build ;; esac
sesame=$build/sesame
# A program without models beside it.
mkdir -p "$tmp/p/bin" "$tmp/m" "$tmp/here"
cp "$sesame" "$tmp/p/bin/sesame"
alone=$tmp/p/bin/sesame
unset SESAME_MODELS
export HF_HUB_CACHE="$tmp/hub" # of the user: not listed

# ---- names ----
cp -r tests/pipelines/bert-mask "$tmp/m/sesame-small"
that 'not found: lists the searched folders, gives advice' \
    '! "$alone" fill-mask "a [MASK]" 2>"$tmp/err" && grep -q "sesame-small: no such folder" "$tmp/err" && grep -q "sesame models" "$tmp/err"'
that 'exit 3' '"$alone" fill-mask "a [MASK]" 2>/dev/null; [ $? -eq 3 ]'
that 'models: none' '[ -z "$("$alone" models 2>"$tmp/err")" ] && grep -q "No models" "$tmp/err"'
that 'models: none, as JSON' '[ "$("$alone" models --json)" = "[]" ]'
SESAME_MODELS=$tmp/nowhere::$tmp/m
export SESAME_MODELS
that 'by default' '"$alone" fill-mask "The [MASK] rings." >"$tmp/default"'
that 'by name' '"$alone" fill-mask -m sesame-small "The [MASK] rings." | cmp -s - "$tmp/default"'
that 'by folder' '"$alone" fill-mask -m tests/pipelines/bert-mask "The [MASK] rings." | cmp -s - "$tmp/default"'
that 'an operand by name' '"$alone" info sesame-small | grep -q BertForMaskedLM'
that 'listed' '"$alone" models | grep -q "^sesame-small .*fill-mask"'
that 'listed as JSON' '"$alone" models --json | grep -q "\"name\": \"sesame-small\".*\"default_of\": \[\"fill-mask\""'
printf '{"scores": [{"name": "held-out loss", "value": 2.5}]}' >"$tmp/m/sesame-small/scores.json"
that 'with its score' '"$alone" models | grep -q "held-out loss 2.5"'
printf '{"scores": 3' >"$tmp/m/sesame-small/scores.json"
that 'unreadable scores are ignored' '"$alone" models | grep -q "^sesame-small"'
printf '{"scores": [{"value": 2.5}]}' >"$tmp/m/sesame-small/scores.json"
that 'a score without a name is ignored' '"$alone" models | grep -q "^sesame-small  *[0-9.]* [kKM]*i*B  *-  *fill-mask"'
printf '{}' >"$tmp/m/sesame-small/scores.json"
that 'missing scores' '"$alone" models --json | grep -q "\"scores\": null" && "$alone" models >"$tmp/out"'
rm "$tmp/m/sesame-small/scores.json"
that 'bench accepts a name' '"$alone" bench model --model sesame-small --load 1x4 --quick -q >"$tmp/out"'
that 'a folder in the current folder precedes a name' '(cd "$tmp/here" && mkdir -p sesame-small && ! "$alone" info sesame-small 2>/dev/null)'
that 'but not the default' '(cd "$tmp/here" && "$alone" fill-mask "The [MASK] rings." | cmp -s - "$tmp/default")'
that 'another name: did you mean' '"$alone" info sesame-smal 2>&1 | grep -q "did you mean .sesame-small"'
that 'no bundled model' '"$alone" rerank a b 2>"$tmp/err"; [ $? -eq 2 ] && grep -q -- "--model DIR is required" "$tmp/err"'
unset SESAME_MODELS
mkdir -p "$tmp/p/share/sesame" && cp -r "$tmp/m" "$tmp/p/share/sesame/models"
that 'installed beside the program' '"$alone" fill-mask "The [MASK] rings." | cmp -s - "$tmp/default"'
rm -r "$tmp/p/share"

# ---- cached models, filters, cards ----
SESAME_MODELS=$tmp/m
export SESAME_MODELS
commit=0123456789abcdef0123456789abcdef01234567
snapshot=$HF_HUB_CACHE/models--acme--tagger/snapshots/$commit
mkdir -p "$(dirname "$snapshot")" "$HF_HUB_CACHE/models--acme--tagger/refs"
cp -r tests/pipelines/bert-mask "$snapshot"
printf %s $commit >"$HF_HUB_CACHE/models--acme--tagger/refs/main"
printf -- '---\nlanguage: [en, de]\nlicense: mit\npipeline_tag: token-classification\n---\n# Tagger\n' >"$snapshot/README.md"
that 'a cached model is listed' '"$alone" models | grep -q "^acme/tagger .*token-classification  *mit"'
that 'as JSON' '"$alone" models --json | "$build/json_valid" && "$alone" models --json |
    grep -q "\"name\": \"acme/tagger\".*\"source\": \"cache\".*\"task\": \"token-classification\", \"license\": \"mit\", \"languages\": \[\"en\", \"de\"\]"'
that 'filters' '[ "$("$alone" models --task ner --language de --json | grep -o "\"name\"" | wc -l)" -eq 1 ] && "$alone" models --license MIT | grep -q acme/tagger'
that 'the task of a class' '"$alone" models --task fill-mask | grep -q "^sesame-small" && ! "$alone" models --task fill-mask | grep -q acme'
that 'no model passes' '[ -z "$("$alone" models --language fr 2>"$tmp/err")" ] && grep -q "No model passes" "$tmp/err" && [ "$("$alone" models --language fr --json)" = "[]" ]'
rm "$snapshot/model.safetensors"
that 'an incomplete one is not listed' '! "$alone" models | grep -q acme'
that 'card: written' '"$alone" card "$tmp/m/sesame-small" --license mit --language en --language de --dataset "a \"b\"" 2>"$tmp/err" &&
    grep -q "^pipeline_tag: fill-mask" "$tmp/m/sesame-small/README.md" && grep -q "^# sesame-small" "$tmp/m/sesame-small/README.md"'
that 'card: checked' '"$alone" card sesame-small --check >"$tmp/out" && grep -q "^0 errors, 0 hints" "$tmp/out"'
that 'card: not overwritten' '"$alone" card sesame-small 2>"$tmp/err"; [ $? -eq 2 ] && grep -q -- "--overwrite" "$tmp/err" && grep -q "^license: \"mit\"" "$tmp/m/sesame-small/README.md"'
that 'card: replaced' '"$alone" card sesame-small --overwrite 2>"$tmp/err" && ! grep -q "^license" "$tmp/m/sesame-small/README.md"'
that 'card --check: exit 1' '"$alone" card sesame-small --check >"$tmp/out"; [ $? -eq 1 ] && grep -q "error: license: missing" "$tmp/out"'
that 'card --check --json' '"$alone" card sesame-small --check --json | "$build/json_valid"'
rm "$tmp/m/sesame-small/README.md"
that 'card --check: no card' '"$alone" card sesame-small --check >"$tmp/out"; [ $? -eq 1 ] && grep -q "README.md is missing" "$tmp/out"'
printf -- '---\na: [\n---\n' >"$tmp/m/sesame-small/README.md"
that 'card --check: damaged' '"$alone" card sesame-small --check 2>"$tmp/err"; [ $? -eq 3 ] && grep -q "README.md: front matter, line 2" "$tmp/err" && "$alone" models | grep -q "^sesame-small"'
rm "$tmp/m/sesame-small/README.md"
cp tests/pipelines/bert-mask/model.safetensors "$snapshot"
that 'card: not into the cache' '"$alone" card acme/tagger 2>"$tmp/err"; [ $? -eq 2 ] && grep -q "is not changed" "$tmp/err" && "$alone" card acme/tagger -o - >"$tmp/out" && grep -q "^# acme/tagger" "$tmp/out"'
for card in models/*/README.md; do
    that "check of $card" '"$sesame" card "$(dirname "$card")" --check >"$tmp/out"'
done
unset SESAME_MODELS
rm -r "$HF_HUB_CACHE"

# ---- other programs must not take the integers of int8 models for weights ----

for config in models/*/config.json; do
    grep -q '"sesame-int8"' "$config" || continue
    dir=${config%/config.json}
    that "int8 weights of $dir" '[ -s "$dir/model.sesame-int8" ] && ! ls "$dir" | grep -Eq "[.](safetensors|bin|pt|h5|msgpack)$"'
    that "its card shows how to restore f32" 'grep -q "^sesame convert ${dir#models/} .*--dtype f32" "$dir/README.md"'
done

# Tasks without a bundled model are named in the documentation.
for task in $(sed -n 's/^SES_TASK([a-z0-9_]*, "\([^"]*\)".*/\1/p' src/task/tasks.def); do
    grep -q "\"$task\"" src/model/bundled_models.def && continue
    that "$task in docs/MODELS.md" 'tr "\n" " " <docs/MODELS.md | grep -q "\`$task\`[^.]* have no bundled model"'
    that "$task --help" '"$sesame" $task --help | grep -q "No model is bundled for this task"'
done

# ---- adapters of an int8 model ----
printf 'text\tlabel\nthe bell rings at noon\tgood\nnobody went home\tbad\nthe bell\tgood\nnobody\tbad\n' >"$tmp/t.tsv"
"$sesame" quantize tests/pipelines/bert-mask "$tmp/base" --dtype int8 -q
tune() { "$sesame" finetune -m "$tmp/base" --adapter lora --lora-targets all --steps 3 --lr 1e-2 -q -t 1 "$@"; }
that 'trained' 'tune --task classify --train "$tmp/t.tsv" --eval "$tmp/t.tsv" -o "$tmp/tuned"'
"$sesame" eval "$tmp/tuned" "$tmp/t.tsv" --task classify --json >"$tmp/score"
that 'saved in 16 bits' '"$sesame" convert "$tmp/tuned" "$tmp/small" --keep-adapter --dtype f16 | grep -q F16'
that 'its base model is beside it' 'grep -q "\"base_model_name_or_path\": \"../base\"" "$tmp/small/adapter_config.json"'
that 'without the files of its base model' '[ ! -e "$tmp/small/tokenizer.json" ] && [ ! -e "$tmp/small/vocab.txt" ]'
that 'both moved: the same scores' 'mkdir "$tmp/moved" && mv "$tmp/base" "$tmp/small" "$tmp/moved" && (cd / &&
    "$sesame" eval "$tmp/moved/small" "$tmp/t.tsv" --task classify --json >"$tmp/again") &&
    [ "$(cut -c1-30 "$tmp/score")" = "$(cut -c1-30 "$tmp/again")" ]'
that 'info' '"$sesame" info "$tmp/moved/small" 2>/dev/null | grep -q "Base model *.*base"'
that 'a pipeline' '"$sesame" text-classification -m "$tmp/moved/small" "the bell" | grep -Eq "good|bad"'
mv "$tmp/moved/base" "$tmp/base"
that 'base model missing: an error' '! "$sesame" info "$tmp/moved/small" 2>"$tmp/err" && grep -q "base_model_name_or_path" "$tmp/err"'
that 'no adapter to keep' '! "$sesame" convert "$tmp/base" "$tmp/x" --keep-adapter 2>"$tmp/err" && grep -q "not an adapter" "$tmp/err"'
that 'not in 8 bits' '"$sesame" convert "$tmp/tuned" "$tmp/x" --keep-adapter --dtype int8 2>/dev/null; [ $? -eq 2 ]'
that 'does not overwrite' '! "$sesame" convert "$tmp/tuned" "$tmp/moved/small" --keep-adapter 2>/dev/null'
printf 'the bell rings\tthe bell\nnobody went\tnobody\n' >"$tmp/pairs.tsv"
that 'adapter of a sentence encoder' 'tune --task embed --no-header --text 1 --pair 2 --train "$tmp/pairs.tsv" -o "$tmp/embed" &&
    "$sesame" convert "$tmp/embed" "$tmp/embed16" --keep-adapter --dtype f16 -q'
that 'its vectors' '"$sesame" embed -m "$tmp/embed" --json "the bell" | cut -c1-5 >"$tmp/a" &&
    "$sesame" embed -m "$tmp/embed16" --json "the bell" | cut -c1-5 | cmp -s - "$tmp/a"'
that 'the same with --adapter' '"$sesame" embed -m "$tmp/base" --adapter "$tmp/embed16" --json "the bell" | cut -c1-5 | cmp -s - "$tmp/a"'

# ---- the bundled models ----
if [ -d models ]; then
    m=$PWD/models
    SESAME_MODELS=$m
    export SESAME_MODELS
    cd / || exit 1
    that 'all are listed' '[ "$("$sesame" models | grep -c "^sesame-")" -eq "$(find "$m" -name config.json -path "$m/*/config.json" ! -path "*_Pooling*" | wc -l)" ]'
    that 'at most 30 MB' '[ "$(find "$m" -type f -exec cat {} + | wc -c)" -le 30000000 ]'
    that 'each has a card and scores' 'for d in "$m"/*/; do [ -s "$d/README.md" ] && [ -s "$d/scores.json" ] || exit 1; done'
    that 'no card misses a number' '! grep -q "{[a-z]" "$m"/*/README.md'
    that 'fill-mask' '"$sesame" fill-mask --top-k 10 "She made a cup of [MASK]." | grep -Eq "^ *(tea|coffee|water|milk|wine|chocolate) "'
    that 'positive sentiment' '"$sesame" sentiment-analysis "A warm, funny and moving film." | grep -q "^ *positive"'
    that 'negative sentiment' '"$sesame" sentiment-analysis "A dull, stupid film, and a waste of time." | grep -q "^ *negative"'
    that 'named entities' '"$sesame" ner -a first "He went to London and Germany." | grep -q "London LOC"'
    that 'question answering' '"$sesame" question-answering --json "When was the bridge opened?" "The bridge was opened in 1894 after eight years of work." | grep -q "1894"'
    that 'similarity' '"$sesame" similarity --json "A man is playing a guitar." "Someone plays the guitar." "The stock market fell." |
        awk -F "[][, ]+" "{ exit !(\$2 > \$3) }"'
    that 'zero-shot classification' '"$sesame" zero-shot-classification --json --candidate-labels sports,business "The team won the match and the league." |
        grep -q "\"labels\": \[\"sports\""'
    that 'tokenize and detokenize without --model' '[ "$("$sesame" tokenize --json "A film." | "$sesame" detokenize)" = "a film." ]'
    that 'info: 8-bit weights are packed as they are' '"$sesame" info sesame-small --json | awk "/\"(mapped|packed)_bytes\"/ { gsub(/[^0-9]/, \"\"); n++; ok += \$0 < 24000000 } END { exit !(n == 2 && ok == 2) }"'
    for adapter in "$m"/*/adapter_config.json; do
        name=$(basename "$(dirname "$adapter")")
        that "tokenize -m $name" '[ "$("$sesame" tokenize -m $name "A film.")" = "$("$sesame" tokenize -m sesame-small "A film.")" ]'
        that "info $name" '"$sesame" info -q $name | grep -q "^Base model .*sesame-small, I8"'
    done
    that 'corpus build --tokenizer' 'echo "A film." >"$tmp/film.txt" && "$sesame" corpus build "$tmp/film.txt" -o "$tmp/film.ids" --tokenizer sesame-sentiment -q'
    that 'tokenizer convert' '"$sesame" tokenizer convert sesame-sentiment "$tmp/tk.json" && [ "$("$sesame" tokenize -m "$tmp/tk.json" "A film.")" = "$("$sesame" tokenize -m sesame-small "A film.")" ]'
    printf 'text\tlabel\na fine film\tpositive\na dull film\tnegative\n' >"$tmp/films.tsv"
    that 'fine-tune a bundled adapter further' '"$sesame" finetune -m sesame-sentiment --task classify --train "$tmp/films.tsv" --steps 1 -o "$tmp/films" -q'
    that 'its card names convert' 'grep -q "sesame convert BASE OUT --dtype f32" "$tmp/films/README.md"'
    that 'its labels' '"$sesame" text-classification -m "$tmp/films" "A warm, funny and moving film." | grep -q "^ *positive"'
    cp -r "$m/sesame-gpt" "$tmp/plain" && rm "$tmp/plain/generation_config.json"
    prompt='The old man looked at the sea and'
    "$sesame" text-generation "$prompt" >"$tmp/sampled"
    that 'the same text each time' '"$sesame" text-generation "$prompt" | cmp -s - "$tmp/sampled"'
    that 'in JSON, too' '"$sesame" text-generation --json "$prompt" | grep -q "generated_text.*The old man"'
    that 'another seed' '! "$sesame" text-generation --seed 1 "$prompt" | cmp -s - "$tmp/sampled"'
    that 'greedy decoding' '[ "$("$sesame" text-generation --do-sample false --repetition-penalty 1 --max-new-tokens 40 "$prompt")" = "$("$sesame" text-generation -m "$tmp/plain" --max-new-tokens 40 "$prompt")" ]'
    that 'perplexity does not depend on it' '[ "$("$sesame" perplexity "$prompt")" = "$("$sesame" perplexity -m "$tmp/plain" "$prompt")" ]'
    repeated() { # sequences of four words that occur again, in percent
        tr ' ' '\n' | awk '{ if (n >= 3 && seen[a b c $1]++) again++; a = b; b = c; c = $1; n++ } END { print int(100 * again / n) }'
    }
    that 'greedy decoding loops' '[ "$("$sesame" text-generation -m "$tmp/plain" --max-new-tokens 100 "In 1848, the city of" | repeated)" -gt 20 ]'
    that 'the default does not' '[ "$("$sesame" text-generation --max-new-tokens 100 "In 1848, the city of" | repeated)" -lt 5 ]'
    that 'convert keeps the settings' '"$sesame" convert sesame-gpt "$tmp/wide" --dtype f32 -q && cmp -s "$m/sesame-gpt/generation_config.json" "$tmp/wide/generation_config.json"'
    that 'text generation' '[ "$("$sesame" text-generation --max-new-tokens 10 "The old man" | wc -w)" -gt 5 ]'
else
    skipped=$((skipped + 1))
fi

counted
