#!/bin/sh
# Models of the Hugging Face cache: found by name in every layout, damaged and hostile entries, sesame cache, sesame pull
# from the mock hub. Nothing but pull, rm and prune changes the cache.
set -u
. tests/counted.sh
unset HF_HOME HF_HUB_CACHE HUGGINGFACE_HUB_CACHE XDG_CACHE_HOME HF_HUB_OFFLINE TRANSFORMERS_OFFLINE HF_TOKEN HF_TOKEN_PATH \
    SESAME_MODELS HF_HUB_DISABLE_SYMLINKS http_proxy https_proxy HTTP_PROXY ALL_PROXY all_proxy
case $build in /*) ;; *) build=$PWD/$build ;; esac
sesame=$build/sesame
model=$PWD/tests/pipelines/bert-mask
a=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa b=bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb
HOME=$tmp/home
export HOME
mkdir -p "$HOME"
"$sesame" fill-mask -m "$model" "The [MASK] rings." >"$tmp/expected"

# cache DIR ID COMMIT: a model in the layout of the official client.
cache() {
    repo=$1/models--$(echo "$2" | sed 's,/,--,')
    mkdir -p "$repo/blobs" "$repo/refs" "$repo/snapshots/$3"
    for f in "$model"/*; do
        hash=$( (printf 'blob %d\0' "$(wc -c <"$f")" && cat "$f") | sha1sum | cut -c1-40)
        cp "$f" "$repo/blobs/$hash"
        ln -s "../../blobs/$hash" "$repo/snapshots/$3/$(basename "$f")"
    done
    printf %s "$3" >"$repo/refs/main"
}
fills() { "$sesame" fill-mask -m "$@" "The [MASK] rings." 2>"$tmp/err" | cmp -s - "$tmp/expected"; }
fails() { # MESSAGE NAME: exit status 3 and the message in one line
    "$sesame" fill-mask -m "$2" "The [MASK] rings." >"$tmp/out" 2>"$tmp/err"
    [ $? -eq 3 ] && [ "$(wc -l <"$tmp/err")" -eq 1 ] && grep -q "$1" "$tmp/err"
}
state() { find "$1" -exec ls -ld --time-style=full-iso {} + | awk '{ $2 = ""; print }' | sort | cksum; }

# ---- where the cache is ----
c=$tmp/home/.cache/huggingface/hub
that 'not cached: names the command' 'fails "sesame pull acme/tiny" acme/tiny && grep -q "no such folder" "$tmp/err"'
cache "$c" acme/tiny $a
before=$(state "$c")
that '~/.cache' 'fills acme/tiny'
that 'hf://' 'fills hf://acme/tiny'
that '@main' 'fills acme/tiny@main'
that '@COMMIT' 'fills acme/tiny@$a'
that 'another revision' 'fails "no such revision.*sesame pull acme/tiny@v2" acme/tiny@v2'
that 'another commit' 'fails "incomplete in the cache" acme/tiny@$b'
that 'operands' '"$sesame" info acme/tiny | grep -q BertForMaskedLM'
that 'tokenizers' '[ "$("$sesame" tokenize -m acme/tiny "the bell")" = "$("$sesame" tokenize -m "$model" "the bell")" ]'
that 'the cache is unchanged' '[ "$(state "$c")" = "$before" ]'
mkdir -p "$tmp/xdg/huggingface" && cp -r "$c" "$tmp/xdg/huggingface/hub"
mv "$HOME/.cache" "$HOME/other"
that 'XDG_CACHE_HOME' 'XDG_CACHE_HOME=$tmp/xdg fills acme/tiny && fails "sesame pull" acme/tiny'
that 'HF_HOME' 'HF_HOME=$tmp/xdg/huggingface XDG_CACHE_HOME=/nowhere fills acme/tiny'
that 'HF_HUB_CACHE' 'HF_HUB_CACHE=$tmp/xdg/huggingface/hub HF_HOME=/nowhere fills acme/tiny'
that 'HUGGINGFACE_HUB_CACHE' 'HUGGINGFACE_HUB_CACHE=$tmp/xdg/huggingface/hub HF_HOME=/nowhere fills acme/tiny'
that '~ in HF_HUB_CACHE' 'HF_HUB_CACHE="~/other/huggingface/hub" fills acme/tiny'
that 'a link to the cache' 'ln -s "$tmp/xdg/huggingface/hub" "$tmp/link" && HF_HUB_CACHE=$tmp/link fills acme/tiny'
that 'a folder precedes the cache' '(mkdir -p "$tmp/here/acme/tiny" && cd "$tmp/here" && export HF_HUB_CACHE="$tmp/link" && ! fills acme/tiny)'
HF_HUB_CACHE=$tmp/hub
export HF_HUB_CACHE
cache "$HF_HUB_CACHE" tiny $a
that 'a name without organization' 'fills tiny && fills hf://tiny'
that 'a name of SESAME_MODELS precedes it' '(mkdir -p "$tmp/m" && cp -r "$model" "$tmp/m/tiny" && rm "$tmp/m/tiny/config.json" && echo "{}" >"$tmp/m/tiny/config.json" && export SESAME_MODELS="$tmp/m" && ! fills tiny)'
for bad in a/b/c ../x /x/y; do that "a path: $bad" '! fills "$bad" && ! grep -q "sesame pull" "$tmp/err"'; done
that 'a wrong name after hf://' 'fails "expected ORG/NAME" "hf://a/b/c"'
that 'a wrong revision' 'fails "branch, a tag or a commit" "hf://a/b@../x"'

# ---- layouts ----
fresh() { rm -rf "$HF_HUB_CACHE"; cache "$HF_HUB_CACHE" acme/tiny $a; repo=$HF_HUB_CACHE/models--acme--tiny; snap=$repo/snapshots/$a; }
fresh
rm -r "$snap" && cp -r "$model" "$snap"
that 'real files instead of links' 'fills acme/tiny'
fresh
mkdir -p "$HF_HUB_CACHE/blobs/ab" && w=$(readlink -f "$snap/model.safetensors") && mv "$w" "$HF_HUB_CACHE/blobs/ab/x" && ln -s ../../blobs/ab/x "$w"
that 'shared blobs of the cache' 'fills acme/tiny'
fresh
mkdir -p "$repo/refs/refs/pr" && printf %s $a >"$repo/refs/refs/pr/1"
that 'refs in folders' 'fills acme/tiny@refs/pr/1'

# ---- incomplete ----
tree() { # the list of the commit, as the official client writes it
    mkdir -p "$repo/trees"
    { printf '{"format_version": 1, "files": {'
      sep=
      for f in "$model"/*; do
          printf '%s"%s": {"size": %d, "blob_id": "%s"}' "$sep" "$(basename "$f")" "$(wc -c <"$f")" $a
          sep=', '
      done
      printf '%s}}' "${1-}"; } >"$repo/trees/$a.json"
}
fresh && tree && that 'with its list' 'fills acme/tiny'
rm "$snap/model.safetensors"
that 'weights missing: only a tokenizer' '"$sesame" tokenize -m acme/tiny "the bell" >"$tmp/out"'
that 'weights missing: named when they are opened' 'fails "model.safetensors.*sesame pull acme/tiny" acme/tiny'
rm "$snap/tokenizer.json"
that 'weights missing: incomplete' 'fails "incomplete in the cache: model.safetensors is missing, and others are; run .sesame pull acme/tiny" acme/tiny'
rm "$repo/trees/$a.json"
that 'the same without a list' 'fails "incomplete.*model.safetensors" acme/tiny'
fresh && tree && rm "$snap/tokenizer.json"
that 'no tokenizer: named when it is opened' 'fails "the cache lacks tokenizer.json of acme/tiny" acme/tiny && "$sesame" info acme/tiny >"$tmp/out"'
rm "$repo/trees/$a.json"
that 'no tokenizer, and no list of files' 'fails "neither tokenizer.json nor vocab.txt found; .*sesame pull acme/tiny@$a" acme/tiny'
fresh && mv "$snap/model.safetensors" "$snap/model-00001-of-00002.safetensors"
printf '{"weight_map": {"a": "model-00001-of-00002.safetensors", "b": "model-00002-of-00002.safetensors"}}' >"$snap/model.safetensors.index.json"
that 'a shard is missing' 'fails "model-00002-of-00002.safetensors is missing" acme/tiny'
fresh && rm -r "$snap"
that 'no snapshot' 'fails "no file of commit $a" acme/tiny'

# ---- damaged and hostile ----
fresh && printf 'garbage' >"$repo/refs/main" && before=$(state "$HF_HUB_CACHE")
that 'refs: garbage' 'fails "refs/main: not a commit" acme/tiny'
: >"$repo/refs/main" && that 'refs: empty' 'fails "refs/main: not a commit" acme/tiny'
printf '../../../../etc/aaaaaaaaaaaaaaaaaaaaaaaaaa' >"$repo/refs/main" && that 'refs: a path' 'fails "refs/main: not a commit" acme/tiny'
head -c 100000 /dev/zero >"$repo/refs/main" && that 'refs: long' 'fails "refs/main" acme/tiny'
rm "$repo/refs/main" && mkfifo "$repo/refs/main" && that 'refs: a pipe' 'fails "refs/main" acme/tiny'
fresh && rm "$repo"/blobs/*
that 'broken links' 'fails "damaged in the cache: .* is a broken link" acme/tiny'
fresh && ln -sf /etc/passwd "$snap/config.json"
that 'a link out of the cache' 'fails "config.json is a link out of the cache" acme/tiny'
that 'not read' '! grep -q root "$tmp/err"'
fresh && ln -sf ../../../../hub2/x "$snap/vocab.txt" && mkdir -p "$tmp/hub2" && echo x >"$tmp/hub2/x"
that 'a link to a folder with a similar name' 'fails "vocab.txt is a link out of the cache" acme/tiny'
fresh && ln -s /etc "$snap/1_Pooling"
that 'a link to a folder' 'fails "1_Pooling is a link to a folder" acme/tiny'
fresh && mv "$repo" "$tmp/moved" && ln -s "$tmp/moved" "$repo"
that 'the whole model a link' 'fails "link out of the cache" acme/tiny'
rm -r "$tmp/moved"
fresh && tree && : >"$(readlink -f "$snap/config.json")"
that 'a truncated file' 'fails "config.json has a wrong size" acme/tiny'
# without a list: the hash of a file that cannot be read is compared with the name of its blob
truncated() { blob=$(readlink -f "$snap/$1") && head -c "$2" "$blob" >"$tmp/start" && cp "$tmp/start" "$blob"; }
again='the file is damaged: .sesame cache rm acme/tiny. and .sesame pull acme/tiny@a*. load it again'
for name in model.safetensors config.json tokenizer.json; do
    fresh && truncated "$name" 200
    that "a truncated $name" 'fails "the hash of $name is wrong, $again" acme/tiny'
done
that 'explained once' '[ "$(grep -o "is damaged" "$tmp/err" | wc -l)" -eq 1 ]'
fresh && truncated tokenizer.json 200
that 'also of tokenize' '! "$sesame" tokenize -m acme/tiny x 2>"$tmp/err" && grep -q "$again" "$tmp/err"'
fresh && truncated config.json 200
that 'also of info' '! "$sesame" info acme/tiny 2>"$tmp/err" >"$tmp/out" && grep -q "$again" "$tmp/err"'
fresh && truncated model.safetensors 5000
that 'also of a path to the snapshot' 'fails "$again" "$snap"'
fresh && rm "$snap/model.safetensors" && cp "$tmp/start" "$snap/model.safetensors"
that 'not of a file whose hash is unknown' '! fills acme/tiny && ! grep -q "is damaged" "$tmp/err"'
fresh && tree && printf '{"format_version": 1, "fil' >"$repo/trees/$a.json"
that 'a truncated list' 'fails "trees/$a.json.*sesame pull" acme/tiny'
tree ', "../../x": {"size": 1, "blob_id": "x"}'
that 'a hostile list' 'fails "relative path" acme/tiny'
printf '{"format_version": 99}' >"$repo/trees/$a.json"
that 'a list of a later version' 'fills acme/tiny'
printf '{"format_version": 1, "files": {"config.json": {"size": 1e99, "blob_id": null}}}' >"$repo/trees/$a.json"
that 'an absurd size' 'fails "size is missing or out of range" acme/tiny'
fresh && ln -s loop "$snap/loop" && that 'a loop that is not read' 'fills acme/tiny'
fresh && mkdir -p "$repo/refs/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x" && for l in p q r s t u; do ln -s . "$repo/refs/$l"; done
that 'deep refs and links in circles' '"$sesame" cache ls >"$tmp/out" 2>"$tmp/err" && grep -q "^acme/tiny .*complete" "$tmp/out" && "$sesame" models | grep -q "^acme/tiny "'
fresh && n=0 && at=$snap && while [ $n -lt 40 ]; do at=$at/x n=$((n + 1)); done && mkdir -p "$at"
that 'a deep snapshot: rm tells why' '"$sesame" cache prune --yes 2>"$tmp/err"; [ $? -eq 3 ] && grep -q "folders deep" "$tmp/err" && fills acme/tiny'
fresh && for r in zz dev v1 aaa; do printf %s $a >"$repo/refs/$r"; done
that 'main is the first ref' '"$sesame" cache ls | grep -q "(main, aaa, dev, v1, zz)" && "$sesame" models >"$tmp/out" && grep -q "^acme/tiny " "$tmp/out"'
that 'the card of the list exists' '"$sesame" models >"$tmp/out" && ! sed -n "s/^Model cards.*: \(.*\), ...$/\1/p" "$tmp/out" | grep -q acme'

# ---- adapters ----
fresh
printf 'text\tlabel\nthe bell rings\tgood\nnobody went\tbad\n' >"$tmp/t.tsv"
that 'an adapter of a cached model' '"$sesame" finetune -m acme/tiny --adapter lora --task classify --train "$tmp/t.tsv" --steps 1 -o "$tmp/tuned" -q 2>"$tmp/err"'
that 'names its base model and commit' 'grep -q "\"base_model_name_or_path\": \"acme/tiny\"" "$tmp/tuned/adapter_config.json" && grep -q "\"revision\": \"$a\"" "$tmp/tuned/adapter_config.json"'
that 'its card names it' 'grep -q "base model | acme/tiny" "$tmp/tuned/README.md"'
that 'finds it' '"$sesame" text-classification -m "$tmp/tuned" "the bell" >"$tmp/out" 2>"$tmp/err"'
that 'tokenizer of the base model' '"$sesame" tokenize -m "$tmp/tuned" "the bell" >"$tmp/out"'
rm -r "$repo"
that 'base model not cached' '! "$sesame" info "$tmp/tuned" 2>"$tmp/err" && grep -q "sesame pull acme/tiny@$a" "$tmp/err"'

# ---- sesame cache ----
fresh && cache "$HF_HUB_CACHE" acme/old $b && mkdir -p "$HF_HUB_CACHE/datasets--x--y" "$HF_HUB_CACHE/models--..--evil"
that 'ls' '"$sesame" cache ls >"$tmp/out" 2>"$tmp/err" && grep -q "^acme/tiny  *aaaaaaaaaaaa (main) .*complete" "$tmp/out" && ! grep -q "evil\|datasets" "$tmp/out"'
that 'ls --json' '"$sesame" cache ls --json | "$build/json_valid" && "$sesame" cache ls --json | grep -q "\"model\": \"acme/old\".*\"refs\": \[\"main\"\].*\"state\": \"complete\""'
that 'ls NAME' '[ "$("$sesame" cache ls acme/old -q | wc -l)" -eq 2 ]'
that 'ls: unknown' '! "$sesame" cache ls acme/none 2>"$tmp/err" && grep -q "not in the cache" "$tmp/err"'
that 'verify' '"$sesame" cache verify >"$tmp/out" && grep -q "8 files verified, 0 damaged" "$tmp/out"'
w=$(readlink -f "$snap/model.safetensors") && printf x | dd of="$w" bs=1 seek=5000 conv=notrunc status=none
that 'verify: damaged' '"$sesame" cache verify >"$tmp/out" 2>"$tmp/err"; [ $? -eq 1 ] && grep -q "^acme/tiny@aaaaaaaaaaaa: model.safetensors: its hash is wrong" "$tmp/out"'
that 'verify --json' '"$sesame" cache verify --json acme/tiny | "$build/json_valid" && "$sesame" cache verify --json | grep -q "\"path\": \"model.safetensors\", \"problem\": \"its hash"'
that 'verify NAME' '"$sesame" cache verify acme/old >"$tmp/out"'
that 'rm asks' '"$sesame" cache rm acme/old </dev/null 2>"$tmp/err"; [ $? -eq 2 ] && grep -q -- "--yes" "$tmp/err" && fills acme/old'
that 'rm --dry-run' '"$sesame" cache rm acme/old --dry-run >"$tmp/out" && fills acme/old'
that 'rm --yes' '"$sesame" cache rm acme/old --yes >"$tmp/out" && [ ! -e "$HF_HUB_CACHE/models--acme--old" ] && [ -d "$HF_HUB_CACHE/datasets--x--y" ]'
that 'rm: not cached' '! "$sesame" cache rm acme/old --yes 2>"$tmp/err" && grep -q "not in the cache" "$tmp/err"'
fresh && cp -r "$snap" "$repo/snapshots/$b" && rm "$repo/snapshots/$b/config.json" && mkdir -p "$repo/blobs" && printf other >"$repo/blobs/$b" && ln -s "../../blobs/$b" "$repo/snapshots/$b/config.json" && printf %s $b >"$repo/refs/v2"
that 'rm of a revision' '"$sesame" cache rm acme/tiny@v2 --yes >"$tmp/out" && [ ! -e "$repo/refs/v2" ] && [ ! -e "$repo/snapshots/$b" ] && [ ! -e "$repo/blobs/$b" ] && fills acme/tiny'
that 'rm of a full commit does not ask' '"$sesame" cache rm acme/tiny@$a </dev/null >"$tmp/out" && [ ! -e "$repo" ]'
fresh && mkdir -p "$repo/snapshots/$b" && echo x >"$repo/blobs/$b" && echo y >"$repo/blobs/$a.sesame.incomplete" && echo z >"$repo/blobs/$a.1234abcd.incomplete"
that 'prune keeps new files' '"$sesame" cache prune --yes >"$tmp/out" && [ -e "$repo/blobs/$b" ]'
that 'prune asks' '"$sesame" cache prune --older-than 0 </dev/null 2>"$tmp/err"; [ $? -eq 2 ] && [ -e "$repo/blobs/$b" ]'
touch -d '2 days ago' "$repo/blobs/$b" "$repo/blobs/$a.sesame.incomplete" "$repo/snapshots/$b"
that 'prune --dry-run --json' '"$sesame" cache prune --dry-run --json | "$build/json_valid" && [ -e "$repo/blobs/$b" ]'
that 'prune' '"$sesame" cache prune --yes >"$tmp/out" && [ ! -e "$repo/blobs/$b" ] && [ ! -e "$repo/snapshots/$b" ] && [ ! -e "$repo/blobs/$a.sesame.incomplete" ] && [ -e "$repo/blobs/$a.1234abcd.incomplete" ] && fills acme/tiny'
fresh && mkdir -p "$tmp/victim" && echo keep >"$tmp/victim/keep" && ln -s "$tmp/victim" "$snap/dir" && ln -s "$tmp/victim" "$repo/blobs/dir"
that 'rm does not follow links' '"$sesame" cache rm acme/tiny --yes >"$tmp/out" && [ ! -e "$repo" ] && [ -e "$tmp/victim/keep" ]'
if command -v flock >/dev/null; then
    fresh && mkdir -p "$HF_HUB_CACHE/.locks/models--acme--tiny"
    lock=$HF_HUB_CACHE/.locks/models--acme--tiny/$a.lock
    flock "$lock" sleep 2 &
    sleep 0.3
    that 'rm of a model that is being downloaded' '! "$sesame" cache rm acme/tiny --yes 2>"$tmp/err" && grep -q "another process" "$tmp/err" && fills acme/tiny'
    wait
else
    skipped=$((skipped + 1))
fi
that 'an unknown action' '"$sesame" cache list 2>"$tmp/err"; [ $? -eq 2 ] && grep -q "ls, rm, prune or verify" "$tmp/err"'
that 'no cache' 'HF_HUB_CACHE=$tmp/nowhere "$sesame" cache ls 2>"$tmp/err" && grep -q "No models" "$tmp/err" && [ ! -e "$tmp/nowhere" ]'

# ---- sesame pull, against the mock hub ----
that 'offline' 'HF_HUB_OFFLINE=1 "$sesame" pull acme/tiny 2>"$tmp/err"; [ $? -eq 3 ] && grep -q "no connection was opened" "$tmp/err"'
that 'a wrong name' '"$sesame" pull a/b/c 2>"$tmp/err"; [ $? -eq 2 ]'
that 'a wrong endpoint' 'HF_ENDPOINT=huggingface.co "$sesame" pull a/b 2>"$tmp/err"; [ $? -eq 3 ] && grep -q HF_ENDPOINT "$tmp/err"'
that 'a token with a line end' 'HF_TOKEN="a
b" "$sesame" pull a/b 2>"$tmp/err"; [ $? -eq 3 ] && grep -q "HF_TOKEN: the token has" "$tmp/err"'
if "$sesame" doctor --quick 2>/dev/null | grep -q 'libcurl .*not found'; then
    skipped=$((skipped + 1))
    counted
    exit
fi
rm -rf "$HF_HUB_CACHE"
mkdir -p "$tmp/root/acme" && cp -r "$model" "$tmp/root/acme/tiny" && head -c 400000 /dev/urandom >"$tmp/root/acme/tiny/spiece.model"
mkfifo "$tmp/in"
MOCK_TOKEN=hf_secret "$build/hub_mock" "$tmp/root" 20 <"$tmp/in" >"$tmp/port" 2>"$tmp/log" &
exec 9>"$tmp/in"
while [ ! -s "$tmp/port" ]; do sleep 0.1; done
HF_ENDPOINT=http://127.0.0.1:$(cat "$tmp/port")
export HF_ENDPOINT
that 'no token' '! "$sesame" pull acme/tiny 2>"$tmp/err" && grep -q "set HF_TOKEN" "$tmp/err" && [ ! -e "$HF_HUB_CACHE" ]'
printf 'hf_secret\n' >"$tmp/token"
HF_TOKEN_PATH=$tmp/token
export HF_TOKEN_PATH
that 'pull --dry-run' '"$sesame" pull acme/tiny --dry-run >"$tmp/out" && grep -q "model.safetensors .*no$" "$tmp/out" && [ ! -e "$HF_HUB_CACHE" ]'
that 'a folder instead of the token' '! HF_TOKEN_PATH=$tmp "$sesame" pull acme/tiny 2>"$tmp/err" && grep -q "file of the token: .*directory" "$tmp/err"'
that 'pull --dry-run --json' '"$sesame" pull acme/tiny --dry-run --json | "$build/json_valid"'
"$sesame" pull acme/tiny --parallel 1 >"$tmp/out" 2>"$tmp/err" &
pid=$!
n=0
while [ ! -s "$(ls "$HF_HUB_CACHE"/models--acme--tiny/blobs/*.sesame.incomplete 2>/dev/null | head -n 1)" ] && [ $n -lt 100 ]; do sleep 0.05; n=$((n + 1)); done
sleep 0.2
kill -INT $pid
wait $pid
code=$?
that 'Ctrl-C: exit 130 and a note' '[ $code -eq 130 ] && grep -q "continues the download" "$tmp/err"'
that 'the part is kept, no ref is written' 'ls "$HF_HUB_CACHE"/models--acme--tiny/blobs | grep -q incomplete && [ ! -e "$HF_HUB_CACHE/models--acme--tiny/refs/main" ]'
that 'not usable yet' 'fails "sesame pull acme/tiny" acme/tiny'
that 'pull continues' '"$sesame" pull acme/tiny --json >"$tmp/out" && "$build/json_valid" <"$tmp/out" && fills acme/tiny'
that 'no part is left' '! ls "$HF_HUB_CACHE"/models--acme--tiny/blobs | grep -q incomplete'
that 'verified' '"$sesame" cache verify >"$tmp/out"'
that 'quiet' '[ -z "$("$sesame" pull -q acme/tiny 2>&1)" ]'
that 'nothing is printed but the result' '"$sesame" pull acme/tiny >"$tmp/out" 2>"$tmp/err" && [ ! -s "$tmp/err" ] && grep -q "^Commit " "$tmp/out"'
that 'another revision: the name that opens it' '"$sesame" pull acme/tiny@refs/pr/1 >"$tmp/out" && grep -q "sesame info acme/tiny@refs/pr/1$" "$tmp/out"'
that 'unknown' '! "$sesame" pull acme/none 2>"$tmp/err" && grep -q "no such model" "$tmp/err"'
exec 9>&-
wait
that 'ranges continued it; the token went to the hub only' 'grep -q " [1-9][0-9]* with ranges, tokens: [1-9][0-9]* here, 0 elsewhere" "$tmp/log"'
counted
