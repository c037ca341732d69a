# shellcheck shell=sh disable=SC2034  # used by the tests that read this file
# Fixture of the finetune tests, read with BUILD_DIR in $1: counted checks, a vocabulary, a config, labeled texts in
# $tmp, and $small: options of a run that learns them in milliseconds.
. tests/counted.sh

ok() # description, then a command that must succeed
{
    what=$1
    shift
    if "$@"; then passed=$((passed + 1)); else
        failed=$((failed + 1))
        echo "failed: $what"
    fi
}

exits() # code, then a command; its output goes to $tmp/out and $tmp/err
{
    want=$1
    shift
    "$@" >"$tmp/out" 2>"$tmp/err"
    code=$?
    [ $code -eq "$want" ] || { echo "exit $code, expected $want:"; cat "$tmp/out" "$tmp/err"; return 1; }
}

err_has() { grep -q -- "$1" "$tmp/err" || { cat "$tmp/err"; return 1; }; }
out_has() { grep -q -- "$1" "$tmp/out" || { cat "$tmp/out"; return 1; }; }
score() { sed -n "s/.*\"$1\": \([-0-9.e]*\).*/\1/p" "$2" | head -1; } # of a results file
above() { awk -v x="$1" -v least="$2" 'BEGIN { exit !(x >= least) }' || { echo "$1 is below $2"; return 1; }; }

# A vocabulary, a small model, texts whose label depends on one word.
printf '%s\n' '[PAD]' '[UNK]' '[CLS]' '[SEP]' '[MASK]' good bad film the a was it not paris london anna bob lives in \
    of '##s' who where '?' . 1 2 3 >"$tmp/vocab.txt"
cat >"$tmp/config.json" <<END
{"model_type": "bert", "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64,
 "max_position_embeddings": 64, "type_vocab_size": 2, "vocab_size": 100, "hidden_act": "gelu",
 "hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.1, "layer_norm_eps": 1e-12, "initializer_range": 0.05}
END
awk 'BEGIN {
    split("the film|it|a film|the good old film", s, "|")
    for (i = 0; i < 80; i++) {
        printf "%s was %s .\t%s\n", s[i % 3 + 1], i % 2 ? "good" : "bad", i % 2 ? "pos" : "neg"
    }
}' >"$tmp/rows"
{ printf 'sentence\tlabel\n'; cat "$tmp/rows"; } >"$tmp/train.tsv"
{ printf 'sentence\tlabel\n'; head -20 "$tmp/rows"; } >"$tmp/dev.tsv"
# Checkpoints are kept, so that tests can resume from them.
small="--config $tmp/config.json --tokenizer $tmp/vocab.txt --threads 1 --lr 3e-3 --batch-size 8 --keep-checkpoints 1"
