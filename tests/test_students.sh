#!/bin/sh
# Students made of a teacher's config, relations of tokens, quantization-aware training, from outside; bad input.
# Usage: test_students.sh BUILD_DIR, from the source folder.
. tests/finetune_fixture.sh

sed 's/"num_hidden_layers": 2/"num_hidden_layers": 4/' "$tmp/config.json" >"$tmp/large.json"
data="--task classify --train $tmp/train.tsv --eval $tmp/dev.tsv --threads 1 --lr 3e-3 --batch-size 8"
# shellcheck disable=SC2086  # several options
ok "a teacher" exits 0 "$sesame" finetune --config "$tmp/large.json" --tokenizer "$tmp/vocab.txt" $data --epochs 4 -o "$tmp/teacher"
awk 'BEGIN { FS = OFS = "\t" } NR > 1 { $2 = NR % 3 ? "pos" : "neg" } { print }' "$tmp/train.tsv" >"$tmp/wrong.tsv"
# Labels are worth nothing: what a student knows, it has from the teacher.
teach="--task classify --train $tmp/wrong.tsv --eval $tmp/dev.tsv --threads 1 --lr 3e-3 --batch-size 8
    --teacher $tmp/teacher --hard-weight 0 --soft-weight 1"

# A student of the teacher's config starts with its layers.
# shellcheck disable=SC2086
ok "two layers" exits 0 "$sesame" finetune $teach --student-layers 2 --epochs 2 -o "$tmp/two"
ok "know at once" above "$(score eval_accuracy "$tmp/two/all_results.json")" 0.95
ok "are two" grep -q '"num_hidden_layers": 2' "$tmp/two/config.json"
ok "card" grep -q '| base model | teacher |' "$tmp/two/README.md"
for which in bottom top 1,4 even; do
    # shellcheck disable=SC2086
    ok "$which" exits 0 "$sesame" finetune $teach --student-layers 2 --copy-layers $which --steps 1 --lr 0 -o "$tmp/$which"
done
ok "top is not bottom" sh -c "! cmp -s '$tmp/top/model.safetensors' '$tmp/bottom/model.safetensors'"
# shellcheck disable=SC2086
ok "even by numbers" exits 0 "$sesame" finetune $teach --student-layers 2 --copy-layers 1,3 --steps 1 --lr 0 -o "$tmp/numbers"
ok "the same" cmp -s "$tmp/numbers/model.safetensors" "$tmp/even/model.safetensors"
# shellcheck disable=SC2086
ok "nothing copied" exits 0 "$sesame" finetune $teach --student-layers 2 --copy-layers none --steps 1 --lr 0 -o "$tmp/none"
ok "differs" sh -c "! cmp -s '$tmp/none/model.safetensors' '$tmp/even/model.safetensors'"
ok "works as a model" exits 0 "$sesame" text-classification -m "$tmp/two" "the film was good ."
# shellcheck disable=SC2086
ok "a complete run" exits 0 "$sesame" finetune -o "$tmp/two" --resume

# Relations: another width, other heads.
relate="--relation-weight 1 --relation-heads 8"
# shellcheck disable=SC2086
ok "narrow" exits 0 "$sesame" finetune $teach --student-layers 3 --student-hidden 16 $relate --lr 1e-2 --epochs 10 -o "$tmp/narrow"
ok "learns" above "$(score eval_accuracy "$tmp/narrow/all_results.json")" 0.95
ok "width" grep -q '"hidden_size": 16' "$tmp/narrow/config.json"
ok "heads" grep -q '"num_attention_heads": 2' "$tmp/narrow/config.json"
ok "feed-forward" grep -q '"intermediate_size": 32' "$tmp/narrow/config.json"
# shellcheck disable=SC2086
ok "MiniLM" exits 0 "$sesame" finetune $teach --student-layers 1 --soft-weight 0 --relation-weight 1 --relations attention,vv \
    --teacher-layer 3 --steps 8 --log "$tmp/log" -o "$tmp/minilm"
ok "its loss falls" awk -F'"loss": *' '/"loss"/ { split($2, x, /[,}]/); if (!n++) first = x[1]; last = x[1] }
    END { exit !(n >= 8 && last < first) }' "$tmp/log"

# A factorized teacher: the student is dense and starts with the products of the factors.
ok "factorize the teacher" exits 0 "$sesame" factorize "$tmp/teacher" --rank 32 --embeddings 28 --even-if-larger -o "$tmp/factors"
half() # the student with two layers of the teacher $1, unchanged, as $2; then options
{
    of=$1 to=$2
    shift 2
    exits 0 "$sesame" finetune --task classify --train "$tmp/train.tsv" --eval "$tmp/dev.tsv" --threads 1 --lr 0 --steps 1 \
        --teacher "$of" --student-layers 2 "$@" -o "$to"
}
scores() { "$sesame" predict "$1" "$tmp/dev.tsv" --task classify | sed 's/\("score": [-0-9]*\.[0-9][0-9][0-9]\)[0-9]*/\1/g'; }
ok "student of factors" half "$tmp/factors" "$tmp/half"
ok "is dense" sh -c "! grep -q sesame_low_rank '$tmp/half/config.json'"
ok "student of weights" half "$tmp/teacher" "$tmp/whole"
scores "$tmp/half" >"$tmp/of-factors"
scores "$tmp/whole" >"$tmp/of-weights"
ok "has scores" grep -q score "$tmp/of-weights"
ok "the same scores" cmp "$tmp/of-factors" "$tmp/of-weights"

# Exits are trained with the layers below them: a student has none.
# shellcheck disable=SC2086
ok "a teacher with exits" exits 0 "$sesame" finetune --model "$tmp/teacher" $data --exits frozen --steps 2 -o "$tmp/leaves"
ok "its student" half "$tmp/leaves" "$tmp/stays"
ok "has no exits" sh -c "! grep -q sesame_exits '$tmp/stays/config.json'"

# Lists by layer keep the entries of the copied layers; a list that only has as many entries stays.
sed 's/"hidden_act"/"sesame_ffn_widths": [64, 48, 40, 56], "keys_to_ignore": ["a", "b", "c", "d"], &/' "$tmp/large.json" >"$tmp/widths.json"
# shellcheck disable=SC2086
ok "a teacher of many widths" exits 0 "$sesame" finetune --config "$tmp/widths.json" --tokenizer "$tmp/vocab.txt" $data --steps 1 -o "$tmp/widths"
list() { tr -d ' \n' <"$1/config.json" | grep -q "$2" || { cat "$1/config.json"; return 1; }; }
ok "its student" half "$tmp/widths" "$tmp/narrower"
ok "widths of its layers" list "$tmp/narrower" '"sesame_ffn_widths":\[64,40\]'
ok "another list" list "$tmp/narrower" '"keys_to_ignore":\["a","b","c","d"\]'
ok "of one width" half "$tmp/widths" "$tmp/even-width" --student-ffn 48
ok "no widths" sh -c "! grep -q sesame_ffn_widths '$tmp/even-width/config.json'"
ok "less wide" half "$tmp/widths" "$tmp/thin" --student-hidden 16
ok "no widths" sh -c "! grep -q sesame_ffn_widths '$tmp/thin/config.json'"

cat >"$tmp/neo.json" <<END
{"model_type": "gpt_neo", "hidden_size": 32, "num_layers": 4, "num_heads": 4, "max_position_embeddings": 64, "vocab_size": 100,
 "attention_layers": ["global", "local", "local", "global"], "pad_token_id": 0}
END
# shellcheck disable=SC2086
ok "local and global layers" exits 0 "$sesame" finetune --config "$tmp/neo.json" --tokenizer "$tmp/vocab.txt" $data --steps 1 -o "$tmp/neo"
ok "its student" half "$tmp/neo" "$tmp/small-neo"
ok "kinds of its layers" list "$tmp/small-neo" '"attention_layers":\["global","local"\]'

# Removed heads of an encoder-decoder, which may have parts of different depths.
cat >"$tmp/bart.json" <<END
{"model_type": "bart", "d_model": 32, "encoder_layers": 4, "decoder_layers": 3, "encoder_attention_heads": 4,
 "decoder_attention_heads": 4, "encoder_ffn_dim": 64, "decoder_ffn_dim": 64, "max_position_embeddings": 64, "vocab_size": 100,
 "pad_token_id": 0, "bos_token_id": 2, "eos_token_id": 3, "decoder_start_token_id": 3, "forced_eos_token_id": 3,
 "pruned_heads": {"encoder": {"1": [0], "2": [1, 3]}, "decoder": {"1": [2]}, "cross": {"0": [0], "2": [1]}}}
END
# shellcheck disable=SC2086
ok "an encoder-decoder" exits 0 "$sesame" finetune --config "$tmp/bart.json" --tokenizer "$tmp/vocab.txt" $data --steps 1 -o "$tmp/bart"
ok "its student" half "$tmp/bart" "$tmp/small-bart"
ok "heads of its layers" list "$tmp/small-bart" '"pruned_heads":{"encoder":{"1":\[1,3\]},"decoder":{"1":\[2\]},"cross":{"0":\[0\]}}'

# What does not fit.
refused() # code, message, then options
{
    code=$1 message=$2
    shift 2
    # shellcheck disable=SC2086
    ok "$message" exits "$code" "$sesame" finetune $teach "$@" -o "$tmp/x"
    ok "message" err_has "$message"
}
refused 3 'the student has 5 layers, the teacher only 4' --student-layers 5
refused 2 'copy-layers 1,9: the teacher has layers 1 to 4, not 9' --student-layers 2 --copy-layers 1,9
refused 2 'copy-layers 1,2,3: 3 layers, the student has 2' --student-layers 2 --copy-layers 1,2,3
refused 2 'copy-layers some: expected even, bottom, top' --student-layers 2 --copy-layers some
refused 3 '3 heads do not divide the student.s width 32' --student-heads 3
refused 2 'leave out --model, --config and --embed' --student-layers 2 --model "$tmp/two"
refused 3 'relation-heads 5: does not divide the width of the student' --student-layers 2 --relation-weight 1 --relation-heads 5
refused 3 'teacher-layer 5: the teacher has layers 1 to 4' --student-layers 2 --relation-weight 1 --teacher-layer 5
refused 3 'attention scores: the student has 2 heads, the teacher 4' --student-layers 2 --student-heads 2 --attention-weight 1
# shellcheck disable=SC2086
ok "no teacher" exits 2 "$sesame" finetune $data --student-layers 2 -o "$tmp/x"
ok "message" err_has '--student-layers has no effect without --teacher DIR'
for option in '--relation-weight 1' '--relation-heads 2' '--copy-layers top' '--temperature 3' --from-teacher; do
    # shellcheck disable=SC2086
    ok "$option" exits 2 "$sesame" finetune --model "$tmp/two" $data $option -o "$tmp/x"
    ok "message" err_has "${option%% *} has no effect without --teacher DIR"
done
for option in '--relation-heads 2' '--teacher-layer 2' '--relations vv'; do
    # shellcheck disable=SC2086
    refused 2 "${option%% *} has no effect without --relation-weight X" --student-layers 2 $option
done
refused 2 '--copy-layers has no effect without --from-teacher or --student-layers' --model "$tmp/two" --copy-layers top
refused 2 'or, with --teacher, --student-layers N of at least 1' --student-layers 0

# Quantization-aware training: int8 inference has the scores of the run.
# shellcheck disable=SC2086
ok "qat" exits 0 "$sesame" finetune --config "$tmp/config.json" --tokenizer "$tmp/vocab.txt" $data --qat --epochs 4 -o "$tmp/qat"
ok "learns" above "$(score eval_accuracy "$tmp/qat/all_results.json")" 0.95
ok "quantized" exits 0 "$sesame" quantize "$tmp/qat" "$tmp/qat8" --dtype int8 --task classify --eval "$tmp/dev.tsv" --max-drop 0
ok "int8 scores" exits 0 "$sesame" eval "$tmp/qat8" "$tmp/dev.tsv" --task classify --json
loss=$(sed -n 's/.*"eval_loss": *\([-0-9.e]*\).*/\1/p' "$tmp/out" | head -1)
ok "loss $loss of int8, $(score eval_loss "$tmp/qat/all_results.json") of the run" \
    awk -v a="$loss" -v b="$(score eval_loss "$tmp/qat/all_results.json")" 'BEGIN { exit !(a != "" && (a - b) ^ 2 < (0.02 * b) ^ 2 + 1e-10) }'
# shellcheck disable=SC2086
ok "with an adapter" exits 3 "$sesame" finetune --model "$tmp/teacher" $data --qat --adapter lora -o "$tmp/x"
ok "message" err_has 'qat trains the weights of one model: not with an adapter'

echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
