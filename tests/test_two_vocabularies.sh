#!/bin/sh
# Marian folders with a vocabulary for each language (source.spm and vocab.json, target.spm and target_vocab.json):
# translation, fine-tuning, saved folders. Usage: test_two_vocabularies.sh BUILD_DIR, from the source folder.
. tests/finetune_fixture.sh

cp -r tests/golden/marian-two-vocabs "$tmp/marian"
chmod -R u+w "$tmp/marian"
for beams in 1 3; do
    ok "translation, $beams beams" exits 0 "$sesame" translation -m "$tmp/marian" --max-new-tokens 12 --num-beams $beams \
        "the cat sat on the mat"
    ok "transformers' text, $beams beams" test "$(cat "$tmp/out")" = hhnnnnnnnnn
done

awk 'BEGIN { split("the cat|a dog|the red cat", s, "|"); split("die katze|ein hund|die rote katze", t, "|")
    split("ran home|sat on the mat|saw a dog", v, "|"); split("lief heim|sass auf der matte|sah ein hund", w, "|")
    print "text\ttarget"
    for (i = 0; i < 54; i++) print s[i % 3 + 1] " " v[int(i / 3) % 3 + 1] "\t" t[i % 3 + 1] " " w[int(i / 3) % 3 + 1] }' \
    >"$tmp/data.tsv"
ok "finetune" exits 0 "$sesame" finetune -m "$tmp/marian" --task rewrite --train "$tmp/data.tsv" --eval "$tmp/data.tsv" --epochs 60 \
    --lr 1e-2 --batch-size 18 --max-target 24 -o "$tmp/tuned"
ok "learned" above "$(score eval_rougeL "$tmp/tuned/all_results.json")" 0.9
for file in source.spm target.spm vocab.json target_vocab.json; do
    ok "saves $file" cmp -s "$tmp/marian/$file" "$tmp/tuned/$file"
done
ok "translates" exits 0 "$sesame" translation -m "$tmp/tuned" "the red cat saw a dog"
ok "the target" out_has '^die rote katze sah ein hund$'
ok "convert" exits 0 "$sesame" convert "$tmp/tuned" "$tmp/half" --dtype f16
ok "copies target.spm" test -e "$tmp/half/target.spm"

sed -i 's/"decoder_vocab_size": 30/"decoder_vocab_size": 31/' "$tmp/marian/config.json"
ok "another vocabulary size" exits 3 "$sesame" translation -m "$tmp/marian" "a cat"
ok "names the tensor" err_has 'model.decoder.embed_tokens.weight": shape \[30, 16\], config.json requires \[31, 16\]'
sed -i 's/"decoder_vocab_size": 31/"decoder_vocab_size": 2/' "$tmp/marian/config.json"
ok "padding outside the vocabulary" exits 3 "$sesame" info "$tmp/marian"
ok "names the key" err_has '"decoder_vocab_size" is 2, expected 3 to'
rm "$tmp/tuned/target_vocab.json"
ok "no target_vocab.json" exits 3 "$sesame" translation -m "$tmp/tuned" "a cat"
ok "names the file" err_has 'target_vocab.json'

counted
