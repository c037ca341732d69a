# shellcheck shell=sh disable=SC2034  # used by the including script
# Included by tests of distributed runs, after tests/counted.sh: processes that start as ranks, and comparisons of
# their folders. Variables: $bin, the command's absolute path.
bin=$(cd "$build" && pwd)/sesame
jobs=0

# R, folder, then arguments of sesame: starts R ranks in $tmp/FOLDER, as torchrun does. Their output goes to
# $tmp/out and $tmp/err, their process ids to $tmp/pid.RANK. $rank1_before and $rank1_options: a command before and
# options of one rank alone.
start()
{
    n_ranks=$1 folder=$2
    shift 2
    jobs=$((jobs + 1))
    port=$((20000 + ($$ * 13 + jobs) % 12000))
    mkdir -p "$tmp/$folder"
    : >"$tmp/out"
    : >"$tmp/err"
    r=0
    while [ $r -lt "$n_ranks" ]; do
        before='' after=''
        [ $r -ne 1 ] || before=${rank1_before-} after=${rank1_options-}
        # shellcheck disable=SC2086  # lists of words
        (cd "$tmp/$folder" && exec env RANK=$r LOCAL_RANK=$r WORLD_SIZE="$n_ranks" MASTER_ADDR=127.0.0.1 \
            MASTER_PORT=$port $before "$bin" "$@" $after >>"$tmp/out" 2>>"$tmp/err") &
        echo $! >"$tmp/pid.$r"
        r=$((r + 1))
    done
}

# Waits for the ranks that `start` started; $codes: their exit codes.
finish()
{
    codes='' r=0
    while [ $r -lt "$n_ranks" ]; do
        wait "$(cat "$tmp/pid.$r")"
        codes="$codes $?"
        r=$((r + 1))
    done
}

ranks() { start "$@" && finish; }

# FOLDER, UPDATE: waits until the log has this update.
reaches()
{
    waited=0
    until grep -q "\"step\": $2}" "$tmp/$1/out/log.jsonl" 2>/dev/null; do
        waited=$((waited + 1))
        [ $waited -lt 600 ] || return 1
        sleep 0.05
    done
}

# A, B: the folders A/out and B/out have the same files with the same bytes, except for times.
same_folder()
{
    diff -r -I '^| \(time\|energy\|price\) |' -x .lock -x runs -x times.jsonl -x report.html -x train_results.json -x all_results.json \
        ${ignored+-x "$ignored"} "$tmp/$1/out" "$tmp/$2/out" >"$tmp/diff" || { head -5 "$tmp/diff"; return 1; }
}
