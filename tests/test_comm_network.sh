# Ranks on two simulated hosts (network namespaces): they join, and both sides end when the link between them goes
# down. Needs root and iproute2. Usage: sh tests/test_comm_network.sh BUILD_DIR
build=$1
passed=0 failed=0
a=sesame-a-$$ b=sesame-b-$$
dir=$(mktemp -d) || exit 1
clean() {
    ip netns del "$a" 2>/dev/null
    ip netns del "$b" 2>/dev/null
    rm -rf "$dir"
}
trap clean EXIT

# Two hosts with a cable between them.
hosts() {
    ip netns add "$a" && ip netns add "$b" &&
        ip link add cable netns "$a" type veth peer name cable netns "$b" &&
        ip -n "$a" addr add 10.77.0.1/24 dev cable && ip -n "$b" addr add 10.77.0.2/24 dev cable &&
        ip -n "$a" link set cable up && ip -n "$b" link set cable up &&
        ip -n "$a" link set lo up && ip -n "$b" link set lo up
}
if ! hosts 2>"$dir/why"; then
    echo "skipped: no network namespaces here: $(head -n 1 "$dir/why")"
    echo '0 passed, 0 failed, 10 skipped'
    exit 0
fi

# verify NAME COMMAND...
verify() {
    name=$1
    shift
    if "$@" >"$dir/log" 2>&1; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "failed: $name"
        cat "$dir/log" "$dir"/error.* 2>/dev/null
    fi
}

# ranks COMMAND...: ranks 0 and 1 on host A, 2 and 3 on host B, in the background
ranks() {
    pids=
    for rank in 0 1 2 3; do
        host=$a
        [ $rank -lt 2 ] || host=$b
        RANK=$rank LOCAL_RANK=$((rank % 2)) WORLD_SIZE=4 MASTER_ADDR=10.77.0.1 MASTER_PORT=29511 \
            timeout 60 ip netns exec $host "$@" >"$dir/out.$rank" 2>&1 &
        pids="$pids $!"
    done
}
finish() {
    code=0
    for pid in $pids; do wait "$pid" || code=$?; done
}

ranks "$build/comm_rank" tcp
finish
verify 'four ranks on two hosts' [ $code -eq 0 ]
verify 'all collectives work' grep -q ' 0 failed; 4 ranks by tcp' "$dir/out.0"

ranks "$build/comm_rank" tcp "$dir/error" 100000
sleep 1.5
ip -n "$a" link set cable down
begin=$(date +%s)
finish
verify 'all ranks end' [ $code -eq 1 ]
verify 'in time' [ $(($(date +%s) - begin)) -lt 15 ]
for rank in 0 1; do
    verify "rank $rank names the lost one" grep -q 'rank [23] on .*, update [0-9]*: no sign of life for 3 s' "$dir/error.$rank"
done
for rank in 2 3; do
    verify "rank $rank names rank 0" grep -q 'rank 0 on .*, update [0-9]*: no sign of life for 3 s' "$dir/error.$rank"
done
verify 'one report on host A' [ "$(cat "$dir/error.0" "$dir/error.1" | grep -c '^report')" -eq 1 ]
verify 'one report on host B' [ "$(cat "$dir/error.2" "$dir/error.3" | grep -c '^report')" -eq 1 ]
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
