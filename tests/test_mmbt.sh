#!/bin/sh
# MMBT: text classification with image vectors from a .npy file. Expected scores: MMBTForClassification of transformers on
# tests/golden/mmbt-classify and tests/fixtures/mmbt.npy. Usage: test_mmbt.sh BUILD_DIR, from the source folder.
. tests/finetune_fixture.sh

cp -r tests/golden/mmbt-classify "$tmp/mmbt"
chmod -R u+w "$tmp/mmbt"
printf '%s\n' '[PAD]' '[UNK]' '[CLS]' '[SEP]' '[MASK]' the a cat dog sat >"$tmp/mmbt/vocab.txt"
printf '{"tokenizer_class": "BertTokenizer"}' >"$tmp/mmbt/tokenizer_config.json"
vectors=tests/fixtures/mmbt.npy

near() { awk -v x="$1" -v y="$2" 'BEGIN { d = x - y; exit !(d < 1e-5 && d > -1e-5) }' || { echo "$1, expected $2"; return 1; }; }
score_of() { sed -n "$1s/.*\"$2\", \"score\": \([0-9.]*\).*/\1/p" "$tmp/out"; } # line, label

ok "classifies" exits 0 "$sesame" text-classification -m "$tmp/mmbt" --image-vectors $vectors --top-k all --json "the cat sat" \
    "a dog sat the cat"
ok "text 1, label 0" near "$(score_of 1 LABEL_0)" 0.248376
ok "text 1, label 2" near "$(score_of 1 LABEL_2)" 0.476161
ok "text 2, label 0" near "$(score_of 2 LABEL_0)" 0.258541
ok "text 2, label 1" near "$(score_of 2 LABEL_1)" 0.371476

refuses() # what, exit code, message, arguments
{
    what=$1 code=$2 message=$3
    shift 3
    ok "$what" exits "$code" "$sesame" text-classification "$@"
    ok "$what: message" err_has "$message"
}
refuses "no vectors" 2 'give their vectors with --image-vectors' -m "$tmp/mmbt" "the cat"
refuses "another model" 2 'reads texts only' -m tests/pipelines/bert-label --image-vectors $vectors "the cat"
refuses "a text too many" 3 'has 2 rows: none for text 3' -m "$tmp/mmbt" --image-vectors $vectors a a a
refuses "no file" 3 'No such file' -m "$tmp/mmbt" --image-vectors "$tmp/none.npy" a
refuses "a pair" 3 'has no second text' -m "$tmp/mmbt" --image-vectors $vectors --text-pair b a
head -c 200 $vectors >"$tmp/short.npy"
refuses "truncated" 3 'short.npy' -m "$tmp/mmbt" --image-vectors "$tmp/short.npy" a
LC_ALL=C sed "s/'<f4'/'<c8'/" $vectors >"$tmp/complex.npy"
refuses "complex numbers" 3 'complex.npy' -m "$tmp/mmbt" --image-vectors "$tmp/complex.npy" a
sed -i 's/"modal_hidden_size": 10/"modal_hidden_size": 8/' "$tmp/mmbt/config.json"
refuses "another width" 3 'proj_embeddings.weight' -m "$tmp/mmbt" --image-vectors $vectors a
LC_ALL=C sed 's/(2, 20)/(4, 10)/' $vectors >"$tmp/one.npy"
sed -i 's/"modal_hidden_size": 8/"modal_hidden_size": 10/' "$tmp/mmbt/config.json"
ok "one vector for each text" exits 0 "$sesame" text-classification -m "$tmp/mmbt" --image-vectors "$tmp/one.npy" a a a a
LC_ALL=C sed 's/(2, 20)/(5, 8) /' $vectors >"$tmp/wide.npy"
refuses "rows of 8" 3 'rows of 8 numbers, expected a multiple of 10' -m "$tmp/mmbt" --image-vectors "$tmp/wide.npy" a

counted
