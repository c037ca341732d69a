#!/bin/sh
# A run killed at any moment, or on a full disk, leaves a complete model or none.
# Usage: test_finetune_lost.sh BUILD_DIR, from the source folder.
. tests/finetune_fixture.sh

sed 's/pos$/x/; s/neg$/y/; 2s/.$/z/' "$tmp/train.tsv" >"$tmp/three.tsv" # two kinds of models that do not mix
out=$tmp/out.dir
cat >"$tmp/tune" <<END
#!/bin/sh
data=\$1
shift
exec "$sesame" finetune $small --task classify --train "\$data" --eval "\$data" -o "$out" --steps 8 --eval-every 2 "\$@"
END
tune() { sh "$tmp/tune" "$@"; } # data, then options
# Complete: a model that loads agrees with its own results.
is_complete()
{
    [ -e "$out/config.json" ] || return 0
    of=$tmp/train.tsv
    grep -q '"2": "z"' "$out/config.json" && of=$tmp/three.tsv
    exits 0 "$sesame" eval "$out" "$of" --task classify --json &&
        test "$(score eval_loss "$tmp/out")" = "$(score eval_loss "$out/eval_results.json")"
}

start=$(date +%s%N)
tune "$tmp/train.tsv" --overwrite -q >/dev/null 2>&1
took=$((($(date +%s%N) - start) / 1000000)) # milliseconds of one run
ok "a run" is_complete
killed=0
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16; do
    data=$tmp/train.tsv other=$tmp/three.tsv
    [ $((i % 2)) -eq 0 ] && data=$other other=$tmp/train.tsv
    sh "$tmp/tune" "$data" --overwrite -q >/dev/null 2>&1 &
    pid=$!
    sleep "$(awk -v i=$i -v t="$took" 'BEGIN { printf "%.3f", t * i / 16 / 1000 }')"
    kill -9 $pid 2>/dev/null && killed=$((killed + 1))
    wait $pid 2>/dev/null
    ok "killed $i: complete or absent" is_complete
    if [ -n "$(find "$out" -name 'checkpoint-*' -print | head -1)" ]; then
        # a run killed before its start leaves the previous run
        exits 3 tune "$data" --resume >/dev/null && err_has 'started with other training' >/dev/null && data=$other
        ok "killed $i: resumes" exits 0 tune "$data" --resume
        ok "killed $i: complete again" is_complete
    fi
done
ok "some were killed" test $killed -ge 4
echo half >"$out/.sesame-0123456789abcdef.tmp" # name of an unfinished file
ok "a run after all" exits 0 tune "$tmp/train.tsv" --overwrite
ok "nothing half written stays" test -z "$(find "$out" -name '.sesame-*')"

# A full disk, simulated: files may not grow beyond N blocks.
full() { sh -c 'trap "" XFSZ; ulimit -f '"$1"'; shift; exec "$@"' sh "$@"; }
rm -rf "$out"
tune "$tmp/train.tsv" -q >/dev/null 2>&1
cp "$out/model.safetensors" "$tmp/was"
# shellcheck disable=SC2086
ok "a full disk" exits 3 full 20 "$sesame" finetune $small --task classify --train "$tmp/three.tsv" -o "$out" --steps 2 \
    --overwrite
ok "message" err_has 'too large\|No space'
ok "the model is the one before" cmp -s "$out/model.safetensors" "$tmp/was"
ok "and complete" is_complete

# A failed conversion leaves no folder.
ok "convert on a full disk" exits 3 full 20 "$sesame" convert "$out" "$tmp/converted" --dtype f16
ok "convert on a full disk: no folder" test ! -e "$tmp/converted"
ok "quantize on a full disk" exits 3 full 20 "$sesame" quantize "$out" "$tmp/converted" --dtype f16
ok "quantize on a full disk: no folder" test ! -e "$tmp/converted"
mkdir "$tmp/converted" && echo mine >"$tmp/converted/mine"
ok "convert into a folder on a full disk" exits 3 full 20 "$sesame" convert "$out" "$tmp/converted" --dtype f16
ok "convert into a folder: its files stay" test "$(cat "$tmp/converted/mine")" = mine

# A disk that is too small for the run: an error before the first update. Skipped if no file system can be mounted.
mkdir "$tmp/disk"
# shellcheck disable=SC2086
cat >"$tmp/small_disk" <<END
mount -t tmpfs -o size=100k none "$tmp/disk" || exit 77
"$sesame" finetune $small --task classify --train "$tmp/train.tsv" --eval "$tmp/dev.tsv" -o "$tmp/disk/out" --steps 8
code=\$?
[ -e "$tmp/disk/out/log.jsonl" ] && exit 1
exit \$code
END
unshare -rm sh "$tmp/small_disk" >"$tmp/out" 2>"$tmp/err"
code=$?
if [ $code -eq 3 ] || err_has 'of disk space' >/dev/null; then
    ok "a small disk" test $code -eq 3
    ok "a small disk: message" err_has 'the run needs about .* MB of disk space, .* MB are free'
else
    echo "skipped: a small disk (no unshare or mount)"
fi

echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
