#!/bin/sh
# CRFs, label schemes and taggers of words from outside: finetune, eval, predict, ner; bad input.
# Usage: test_taggers.sh BUILD_DIR, from the source folder.
. tests/finetune_fixture.sh

# IOB1 labels: an entity of two words, one of a single word.
awk 'BEGIN { for (i = 0; i < 40; i++) printf "%s N I-PER\n%s N I-PER\nlives V O\nin P O\n%s N I-LOC\n. . O\n\n",
    i % 2 ? "anna" : "bob", i % 5 ? "good" : "bad", i % 3 ? "paris" : "londons" }' >"$tmp/tags.txt"

# A CRF on an encoder.
# shellcheck disable=SC2086  # several options
ok "crf" exits 0 "$sesame" finetune $small --task ner --crf --scheme bioes --train "$tmp/tags.txt" \
    --eval "$tmp/tags.txt" --epochs 8 -o "$tmp/crf"
ok "learned" above "$(score eval_f1 "$tmp/crf/all_results.json")" 0.95
ok "its scheme" grep -q '"sesame_crf": "bioes"' "$tmp/crf/config.json"
ok "every label of a type" grep -q '"I-LOC"' "$tmp/crf/config.json"
ok "eval converts the labels" exits 0 "$sesame" eval "$tmp/crf" "$tmp/tags.txt" --task tag --json
ok "the same score" test "$(score eval_f1 "$tmp/out")" = "$(score eval_f1 "$tmp/crf/eval_results.json")"
ok "predicts" exits 0 "$sesame" predict "$tmp/crf" "$tmp/tags.txt" --task tag
ok "BIOES" out_has '"tags": \["B-PER", "E-PER", "O", "O", "S-LOC", "O"\]'
ok "predicts BIO" exits 0 "$sesame" predict "$tmp/crf" "$tmp/tags.txt" --task tag --scheme bio
ok "BIO" out_has '"tags": \["B-PER", "I-PER", "O", "O", "B-LOC", "O"\]'
ok "ner" exits 0 "$sesame" ner -m "$tmp/crf" -a simple --json "anna good lives in londons ."
ok "spans of BIOES" out_has '"entity_group": "PER".*"word": "anna good", "start": 0, "end": 9'
ok "pieces of a word" out_has '"entity_group": "LOC".*"word": "londons"'
# shellcheck disable=SC2086
ok "no scheme" exits 0 "$sesame" finetune $small --task ner --crf --train "$tmp/tags.txt" --steps 1 -o "$tmp/none"
ok "notice" err_has 'follow neither BIO nor BIOES'
ok "none" grep -q '"sesame_crf": "none"' "$tmp/none/config.json"
printf 'anna E-PER\nlives O\nbob B-PER\n\nanna S-PER\n. O\n' >"$tmp/wrong.txt"
# shellcheck disable=SC2086
ok "repairs" exits 0 "$sesame" finetune $small --task ner --scheme bio --train "$tmp/wrong.txt" --steps 1 -o "$tmp/fixed"
ok "notice" err_has '2 labels break the rules of BIOES'
ok "BIO labels" grep -q '"B-PER": 0' "$tmp/fixed/config.json"
# shellcheck disable=SC2086
ok "crf of another task" exits 2 "$sesame" finetune $small --task classify --crf --train "$tmp/train.tsv" -o "$tmp/x"
# shellcheck disable=SC2086
ok "crf and all pieces" exits 2 "$sesame" finetune $small --task tag --crf --all-pieces --train "$tmp/tags.txt" -o "$tmp/x"

# Taggers of words.
printf '%s 1 0 0\n' anna bob >"$tmp/vectors.txt"
printf '%s 0 1 0\n' paris londons >>"$tmp/vectors.txt"
printf '%s 0 0 1\n' lives in . >>"$tmp/vectors.txt"
tag="--task ner --threads 1 --batch-size 8 --lr 0.01 --train $tmp/tags.txt --eval $tmp/tags.txt --epochs 8"
# shellcheck disable=SC2086
ok "tagger" exits 0 "$sesame" finetune $tag --embed "static:$tmp/vectors.txt,char" -o "$tmp/tagger"
ok "learned" above "$(score eval_f1 "$tmp/tagger/all_results.json")" 0.95
rm "$tmp/vectors.txt"
ok "eval needs no other file" exits 0 "$sesame" eval "$tmp/tagger" "$tmp/tags.txt" --task tag --json
ok "the same score" test "$(score eval_f1 "$tmp/out")" = "$(score eval_f1 "$tmp/tagger/eval_results.json")"
ok "predict" exits 0 "$sesame" predict "$tmp/tagger" "$tmp/tags.txt" --task tag
ok "tags" out_has '"tags": \["B-PER", "E-PER", "O", "O", "S-LOC", "O"\]'
ok "ner" exits 0 "$sesame" ner -m "$tmp/tagger" -a simple --json "Anna good lives in londons."
ok "words of a text" out_has '"word": "londons", "start": 19, "end": 26'
ok "ner of words" exits 0 sh -c "echo '{\"words\": [\"anna\", \"good\", \"lives\"]}' | '$sesame' ner -m '$tmp/tagger' --json -f -"
ok "empty text" exits 0 "$sesame" ner -m "$tmp/tagger" --json " "
ok "info" exits 0 "$sesame" info "$tmp/tagger"
ok "model" out_has TaggerForTokenClassification
# A large common part of all vectors is removed, as states of language models have one.
for word in anna bob paris londons lives in .; do
    case $word in anna | bob) x='51 50 50' ;; paris | londons) x='50 51 50' ;; *) x='50 50 51' ;; esac
    echo "$word $x"
done >"$tmp/far.txt"
# shellcheck disable=SC2086
ok "vectors far from 0" exits 0 "$sesame" finetune $tag --embed "static:$tmp/far.txt" -o "$tmp/far"
ok "learned" above "$(score eval_f1 "$tmp/far/all_results.json")" 0.95
ok "by their norm" grep -q '"vector_norm": true' "$tmp/far/config.json"
# shellcheck disable=SC2086
ok "as they are" exits 0 "$sesame" finetune $tag --embed "static:$tmp/far.txt" --set vector_norm=false -o "$tmp/far2"
ok "not learned" above 0.9 "$(score eval_f1 "$tmp/far2/all_results.json")"
# shellcheck disable=SC2086
ok "on an encoder" exits 0 "$sesame" finetune $tag --embed "transformer:$tmp/crf,word" -o "$tmp/frozen"
ok "learned" above "$(score eval_f1 "$tmp/frozen/all_results.json")" 0.95
# Layers of the encoder, as in BERT's feature-based tagger.
for layers in 0 -2 -1 1..2+concat 1..2+mix all+mix; do
    # shellcheck disable=SC2086
    ok "layers $layers" exits 0 "$sesame" finetune $tag --embed "transformer:$tmp/crf@$layers,word" --set num_hidden_layers=2 -o "$tmp/layers" --overwrite
    ok "learned: $layers" above "$(score eval_f1 "$tmp/layers/all_results.json")" 0.95
    ok "the same score: $layers" exits 0 "$sesame" eval "$tmp/layers" "$tmp/tags.txt" --task tag --json
    ok "score: $layers" test "$(score eval_f1 "$tmp/out")" = "$(score eval_f1 "$tmp/layers/eval_results.json")"
done
ok "its layers" grep -q '"layers": "all+mix"' "$tmp/layers/config.json"
ok "columns to be mixed" sh -c "tr -d ' \n' <'$tmp/layers/config.json' | grep -q '\"vector_mix\":\[{\"column\":0,\"layers\":2,\"size\":32}\]'"
ok "the weights of the mix" exits 0 "$sesame" info "$tmp/layers" --tensors
ok "one per layer" out_has '\[2\] .*vector_mix.0.weight'
ok "ner" exits 0 "$sesame" ner -m "$tmp/layers" -a simple --json "anna good lives in londons ."
ok "finds" out_has '"entity_group": "LOC".*"word": "londons"'
sed 's/"layers": "all+mix"/"layers": "9+mix"/' "$tmp/layers/config.json" >"$tmp/c.json" && cp "$tmp/c.json" "$tmp/layers/config.json"
ok "a folder with another layer" exits 3 "$sesame" ner -m "$tmp/layers" "anna"
ok "named" err_has 'layers 9+mix: the model has layers 0 to 2'
# shellcheck disable=SC2086
{
    ok "layers that enter later" exits 0 "$sesame" finetune $tag --embed "char,transformer:$tmp/crf@1..2+mix" --lm-layer 1 -o "$tmp/late"
    ok "learned" above "$(score eval_f1 "$tmp/late/all_results.json")" 0.95
    ok "a layer that does not exist" exits 3 "$sesame" finetune $tag --embed "transformer:$tmp/crf@-4..-1+mix" -o "$tmp/x"
    ok "named" err_has 'layers -4..-1+mix: the model has layers 0 to 2, or -1 to -3'
    ok "no layers" exits 2 "$sesame" finetune $tag --embed "transformer:$tmp/crf@1..x" -o "$tmp/x"
    ok "the syntax" err_has 'as @-2, @-4..-1+concat or @all+mix'
}
rm -r "$tmp/crf"
ok "self-contained" exits 0 "$sesame" ner -m "$tmp/frozen" --json "anna good lives in paris ."
ok "finds" out_has B-PER

# A window of words and the whole sentence (Collobert et al. 2011); words in lower case and their capital letters.
for encoder in window sentence; do
    # shellcheck disable=SC2086
    ok "$encoder" exits 0 "$sesame" finetune $tag --embed word,caps --encoder $encoder -o "$tmp/$encoder"
    ok "learned" above "$(score eval_f1 "$tmp/$encoder/all_results.json")" 0.95
    ok "ner" exits 0 "$sesame" ner -m "$tmp/$encoder" -a simple --json "Anna GOOD lives in londons."
    ok "lower case" out_has '"entity_group": "PER".*"word": "anna good", "start": 0, "end": 9'
done
ok "its encoder" grep -q '"encoder": "sentence"' "$tmp/sentence/config.json"
ok "a long sentence" exits 0 "$sesame" ner -m "$tmp/sentence" --json "$(awk 'BEGIN { for (i = 0; i < 300; i++) printf "anna " }')"
# shellcheck disable=SC2086
{
    ok "another encoder" exits 2 "$sesame" finetune $tag --embed word --encoder gru -o "$tmp/x"
    ok "choices" err_has 'choose one of bilstm, window, sentence'
    ok "an encoder without embeddings" exits 2 "$sesame" finetune $small $tag --encoder window -o "$tmp/x"
    ok "set embed" err_has 'set embed, too'
    ok "an even window" exits 3 "$sesame" finetune $tag --embed word --encoder window --set window_size=4 -o "$tmp/x"
    ok "odd" err_has 'expected an odd number of words'
}

# Language models of text, characters and words: tiny ones, trained for a few steps.
awk 'BEGIN { for (i = 0; i < 60; i++) print i % 2 ? "anna good lives in paris ." : "bob bad lives in londons ." }' >"$tmp/text"
for type in "bpe 257 bytes" "wordlevel 50 words"; do
    # shellcheck disable=SC2086
    set -- $type
    ok "tokenizer" exits 0 "$sesame" train-tokenizer --type "$1" --vocab-size "$2" -q -o "$tmp/$3.json" "$tmp/text"
    ok "corpus" exits 0 "$sesame" corpus build --tokenizer "$tmp/$3.json" --line-ends --held-out 10% -o "$tmp/$3" "$tmp/text"
done
bytes="pretrain -c $tmp/bytes --tokenizer $tmp/bytes.json --steps 20 --lr 1e-2 --schedule constant --threads 1"
flair="-p flair-lm --set hidden_size=24 --set embedding_size=8 --objective bptt --length 20"
# shellcheck disable=SC2086
{
    ok "flair" exits 0 "$sesame" $bytes $flair -o "$tmp/flair"
    ok "backward" exits 0 "$sesame" $bytes $flair --set is_forward_lm=false -o "$tmp/backward"
    ok "awd-lstm" exits 0 "$sesame" pretrain -c "$tmp/words" --tokenizer "$tmp/words.json" -p ulmfit --set emb_sz=12 --set n_hid=16 \
        --objective bptt --length 10 --steps 5 --threads 1 -o "$tmp/awd"
    ok "gpt2" exits 0 "$sesame" $bytes -p gpt2 --objective clm --set n_embd=16 --set n_layer=1 --set n_head=2 --set n_positions=32 --length 32 -o "$tmp/gpt2"
    cp -r tests/fixtures/elmo "$tmp/elmo"
    ok "all" exits 0 "$sesame" finetune $tag --embed "elmo:$tmp/elmo,flair:$tmp/flair,flair:$tmp/backward,lm:$tmp/awd,lm:$tmp/gpt2" -o "$tmp/lms"
    ok "learned" above "$(score eval_f1 "$tmp/lms/all_results.json")" 0.95
    ok "their sizes" grep -q '"vector_size": 86' "$tmp/lms/config.json" # 10 + 24 + 24 + 12 + 16
    # TagLM: the states of language models enter after the first layer.
    lms="elmo:$tmp/elmo,static:$tmp/static.txt,lm:$tmp/awd,char"
    printf '%s 1 0 0\n' anna bob >"$tmp/static.txt"
    ok "TagLM" exits 0 "$sesame" finetune $tag --embed "$lms" --lm-layer 1 -o "$tmp/taglm"
    ok "learned" above "$(score eval_f1 "$tmp/taglm/all_results.json")" 0.95
    ok "two layers" grep -q '"num_hidden_layers": 2' "$tmp/taglm/config.json"
    ok "columns of language models" grep -q '"lm_size": 22' "$tmp/taglm/config.json" # 10 + 12
    ok "the same score" exits 0 "$sesame" eval "$tmp/taglm" "$tmp/tags.txt" --task tag --json
    ok "score" test "$(score eval_f1 "$tmp/out")" = "$(score eval_f1 "$tmp/taglm/eval_results.json")"
    ok "no language model" exits 2 "$sesame" finetune $tag --embed char --lm-layer 1 -o "$tmp/x"
    ok "add one" err_has 'no embedding is a language model'
    ok "nothing at the input" exits 3 "$sesame" finetune $tag --embed "lm:$tmp/awd" --lm-layer 1 -o "$tmp/x"
    ok "the first layer" err_has 'a word has no vector'
    ok "above the last layer" exits 3 "$sesame" finetune $tag --embed "char,lm:$tmp/awd" --lm-layer 2 --set num_hidden_layers=2 -o "$tmp/x"
    ok "less" err_has 'expected less than'
    rm -r "$tmp/elmo" "$tmp/backward"
    ok "self-contained" exits 0 "$sesame" ner -m "$tmp/lms" -a simple --json "anna good lives in paris ."
    ok "finds" out_has '"entity_group": "LOC".*"word": "paris"'
    ok "the same score" exits 0 "$sesame" eval "$tmp/lms" "$tmp/tags.txt" --task tag --json
    ok "score" test "$(score eval_f1 "$tmp/out")" = "$(score eval_f1 "$tmp/lms/eval_results.json")"
    ok "words beyond the longest text" exits 0 "$sesame" ner -m "$tmp/lms" "$(awk 'BEGIN { for (i = 0; i < 99; i++) printf "anna " }')"
    ok "flair without characters" exits 3 "$sesame" finetune $tag --embed "flair:$tmp/awd" -o "$tmp/x"
    ok "the reason" err_has 'expected a tokenizer of characters or bytes'
    ok "flair of a Transformer" exits 3 "$sesame" finetune $tag --embed "flair:$tmp/gpt2" -o "$tmp/x"
    ok "expected" err_has 'expected "flair-lm"'
    ok "elmo of another model" exits 3 "$sesame" finetune $tag --embed "elmo:$tmp/flair" -o "$tmp/x"
    ok "expected" err_has 'expected "elmo"'
    ok "lm of an encoder" exits 3 "$sesame" finetune $tag --embed "lm:$tmp/frozen/embedding-0-transformer" -o "$tmp/x"
    ok "what to do" err_has 'use transformer:DIR'
}
rm -r "$tmp/frozen/embedding-0-transformer"
ok "missing embedding" exits 3 "$sesame" ner -m "$tmp/frozen" "anna"
ok "named" err_has 'embedding-0-transformer'
run="--task ner --keep-checkpoints 1 --threads 1 --batch-size 8 --lr 0.01 --train $tmp/tags.txt"
# shellcheck disable=SC2086
ok "interrupted" exits 0 "$sesame" finetune $run --embed char,word --steps 4 --save-every 2 --schedule constant --warmup 0 -o "$tmp/half"
# shellcheck disable=SC2086
ok "whole" exits 0 "$sesame" finetune $run --embed char,word --steps 8 --save-every 2 --schedule constant --warmup 0 -o "$tmp/whole"
# shellcheck disable=SC2086
ok "resumed" exits 0 "$sesame" finetune $run --embed char,word --steps 8 --save-every 2 --schedule constant --warmup 0 --resume -o "$tmp/half"
ok "the same bits" cmp "$tmp/half/model.safetensors" "$tmp/whole/model.safetensors"
# shellcheck disable=SC2086
ok "resumed with other embeddings" exits 3 "$sesame" finetune $run --embed word,char --steps 9 --save-every 2 --schedule constant --warmup 0 --resume -o "$tmp/half"
ok "named" err_has 'started with embed "char,word", not "word,char"'

# Cross-View Training: few labeled and many unlabeled sentences, resumed bit for bit.
head -n 14 "$tmp/tags.txt" >"$tmp/few.txt"
cut -d ' ' -f 1 "$tmp/tags.txt" >"$tmp/plain.txt"
view="--task ner --embed word,char --train $tmp/few.txt --unlabeled $tmp/plain.txt --threads 1 --batch-size 2 --lr 0.01 --epochs 9 --save-every 6 --keep 9"
# shellcheck disable=SC2086
{
    ok "cross-view" exits 0 "$sesame" finetune $view -o "$tmp/view"
    ok "no CRF" sh -c "! grep -q sesame_crf '$tmp/view/config.json'"
    ok "two layers" grep -q '"num_hidden_layers": 2' "$tmp/view/config.json"
    mkdir "$tmp/view2" && cp -r "$tmp/view/checkpoint-6" "$tmp/view2/"
    ok "resumed" exits 0 "$sesame" finetune $view --resume -o "$tmp/view2"
    ok "the same bits" cmp "$tmp/view/model.safetensors" "$tmp/view2/model.safetensors"
    ok "tags" exits 0 "$sesame" ner -m "$tmp/view" "anna good lives in paris ."
    ok "without unlabeled data" exits 0 "$sesame" finetune --task ner --embed word,char --train "$tmp/few.txt" --threads 1 --batch-size 2 --lr 0.01 --epochs 1 -o "$tmp/plain"
    rm "$tmp/view2/all_results.json" && head -n 10 "$tmp/plain.txt" >"$tmp/other.txt"
    ok "other data" exits 3 "$sesame" finetune $view --unlabeled "$tmp/other.txt" --resume -o "$tmp/view2"
    ok "named" err_has 'unlabeled_examples'
    ok "with a CRF" exits 2 "$sesame" finetune $view --crf -o "$tmp/x"
    ok "leave it out" err_has 'leave out crf'
    ok "another task" exits 2 "$sesame" finetune $small --task classify --unlabeled "$tmp/plain.txt" --train "$tmp/train.tsv" -o "$tmp/x"
    ok "tag only" err_has 'the task must be tag'
    ok "another model" exits 3 "$sesame" finetune $small --task ner --unlabeled "$tmp/plain.txt" --train "$tmp/tags.txt" -o "$tmp/x"
    ok "what it needs" err_has 'needs a tagger with a bidirectional LSTM'
}

# An explicit learning rate is kept, also if it is the default of other models.
run="--task ner --threads 1 --train $tmp/tags.txt --steps 1 --embed char"
# shellcheck disable=SC2086
ok "a given rate" exits 0 "$sesame" finetune $run --lr 5e-5 --schedule constant --warmup 0 -o "$tmp/rate"
ok "kept" grep -Eq '"(learning_rate|lr)": 5e-0?5' "$tmp/rate/trainer_state.json"
# shellcheck disable=SC2086
ok "no rate" exits 0 "$sesame" finetune $run --schedule constant --warmup 0 -o "$tmp/default"
ok "the tagger's" grep -Eq '"(learning_rate|lr)": 0.002' "$tmp/default/trainer_state.json"

# Words of 5,000 letters, several empty lines between sentences, empty texts, 100,000 words.
long=$(awk 'BEGIN { for (i = 0; i < 5000; i++) printf "\303\244" }')
{ printf '\n\n\n%s N I-PER\nx O O\n\n\n\n' "$long" && cat "$tmp/tags.txt" && printf '\n\n'; } >"$tmp/long.txt"
awk 'BEGIN { for (i = 0; i < 100000; i++) printf "anna " }' >"$tmp/huge.txt"
for encoder in bilstm window sentence; do
    ok "long words: $encoder" exits 0 "$sesame" finetune --task ner --embed word,char,caps --encoder $encoder --train "$tmp/long.txt" --lr 0.01 --epochs 6 \
        --batch-size 8 --threads 1 -o "$tmp/long-$encoder"
    ok "in a text" exits 0 "$sesame" ner -m "$tmp/long-$encoder" -a simple --json "$long lives in paris"
    ok "a result" out_has '"start": '
    ok "no words" exits 0 "$sesame" ner -m "$tmp/long-$encoder" --json ""
done
ok "100,000 words" exits 0 "$sesame" ner -m "$tmp/long-bilstm" -a simple --json -f "$tmp/huge.txt"
ok "to the last one" out_has '"end": 4999[0-9][0-9]'
cut -d ' ' -f 1 "$tmp/tags.txt" >"$tmp/words.txt"
ok "a column only" exits 3 "$sesame" finetune --task ner --embed word --train "$tmp/words.txt" --steps 1 -o "$tmp/x"
ok "named" err_has 'expected a token and its tag'
printf 'anna 3e38 3e38\nlives 1 2\n' >"$tmp/large.txt"
ok "infinity" exits 3 "$sesame" finetune --task ner --embed "static:$tmp/large.txt,char" --train "$tmp/tags.txt" --set vector_norm=false --steps 3 --threads 1 -o "$tmp/infinite"
ok "update and tensor" err_has 'update 1, epoch 1, batch 1.*the loss is nan: NaN or infinity in the'

# Bad input.
# shellcheck disable=SC2086
ok "no file" exits 3 "$sesame" finetune $tag --embed static:/no/such/file -o "$tmp/x"
ok "named" err_has '/no/such/file'
# shellcheck disable=SC2086
ok "unknown kind" exits 2 "$sesame" finetune $tag --embed glove:x -o "$tmp/x"
ok "lists the kinds" err_has 'static:FILE, transformer:DIR\[@LAYERS\], elmo:DIR, flair:DIR, lm:DIR\[@LAYERS\], word, char'
# shellcheck disable=SC2086
ok "model and embed" exits 2 "$sesame" finetune $tag --embed char -m sesame-small -o "$tmp/x"
printf 'anna B-PER\nlives O\nin LOC\nparis X-LOC\n' >"$tmp/stray.txt"
for scheme in '' '--scheme bio'; do
    # shellcheck disable=SC2086
    ok "labels without prefix" exits 0 "$sesame" finetune --task ner --embed char $scheme --train "$tmp/stray.txt" --steps 1 --overwrite -o "$tmp/stray"
    ok "a notice" err_has 'stray.txt: the label "LOC" is neither O nor has a prefix of BIO'
done
printf 'anna NN\nlives VB\n' >"$tmp/words.txt"
ok "other labels" exits 0 "$sesame" finetune --task tag --embed char --train "$tmp/words.txt" --steps 1 -o "$tmp/pos"
ok "no notice" sh -c "! grep -q 'nor has a prefix' '$tmp/err'"
printf 'anna B-PER\nlives\n' >"$tmp/columns.txt"
ok "columns" exits 3 "$sesame" finetune --task ner --embed char --train "$tmp/columns.txt" -o "$tmp/x"
ok "line" err_has 'columns.txt: line 2'
awk 'BEGIN { for (i = 0; i < 3000; i++) printf "a"; print " B-PER"; print "b O" }' >"$tmp/long.txt"
ok "a long word" exits 0 "$sesame" finetune --task ner --embed char,word --train "$tmp/long.txt" --steps 1 -o "$tmp/long"
ok "nothing was written" test ! -e "$tmp/x"

echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
