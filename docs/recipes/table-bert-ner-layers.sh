#!/bin/sh
# Feature-based NER by layers (Devlin et al. 2019, table 7): a two-layer BiLSTM on layers of a frozen encoder, on CoNLL-2003.
#     sh docs/recipes/table-bert-ner-layers.sh [MODEL [OUT]]
# MODEL: folder or name of an encoder (sesame-small), OUT: folder of the taggers (ner-layers). Prints F1 on the validation and the test
# file: mean and range over the seeds. Finished runs are skipped. The published tagger has no CRF and 768 units; ours has a CRF and UNITS.
# Variables: SESAME (build/sesame), DATA (data/conll2003: train.txt, valid.txt, test.txt), SEEDS (1 2 3), UNITS (256), EPOCHS (8),
# OPTIONS: further options of finetune, as --device cuda or --train-size 2000.
set -eu
model=${1:-sesame-small} out=${2:-ner-layers}
sesame=${SESAME:-build/sesame} data=${DATA:-data/conll2003} seeds=${SEEDS:-1 2 3}
mkdir -p "$out"

row() # NAME PUBLISHED LAYERS
{
    for seed in $seeds; do
        dir=$out/$(echo "$3" | tr '.+' '__')-$seed
        # shellcheck disable=SC2086  # several options
        [ -s "$dir/all_results.json" ] || "$sesame" finetune --task ner --embed "transformer:$model@$3" --set num_hidden_layers=2 \
            --set rnn_size="${UNITS:-256}" --train "$data/train.txt" --eval "$data/valid.txt" --epochs "${EPOCHS:-8}" --seed "$seed" \
            ${OPTIONS-} --output "$dir" --overwrite >/dev/null 2>"$out/log"
        [ -s "$dir/test.json" ] || { "$sesame" eval "$dir" "$data/test.txt" --task ner --json >"$dir/test.part" && mv "$dir/test.part" "$dir/test.json"; }
        valid=$(sed -n 's/.*"eval_f1": \([0-9.]*\).*/\1/p' "$dir/all_results.json" | head -1)
        test=$(sed -n 's/.*"eval_f1": \([0-9.]*\).*/\1/p' "$dir/test.json" | head -1)
        echo "$valid $test"
    done | awk -v name="$1" -v published="$2" '
        { for (i = 1; i <= 2; i++) { x = 100 * $i; sum[i] += x; if (NR == 1 || x < low[i]) low[i] = x; if (NR == 1 || x > high[i]) high[i] = x } }
        END { printf "| %s | %s |", name, published
              for (i = 1; i <= 2; i++) printf " %.2f (%.2f to %.2f) |", sum[i] / NR, low[i], high[i]
              print "" }'
}

printf '| layers of %s | BERT-base, validation | validation | test |\n|---|---|---|---|\n' "$model"
row embeddings 91.0 0
row 'second-to-last hidden' 95.6 -2
row 'last hidden' 94.9 -1
row 'weighted sum, last four hidden' 95.9 -4..-1+mix
row 'concat, last four hidden' 96.1 -4..-1+concat
row 'weighted sum, all layers' 95.5 all+mix
