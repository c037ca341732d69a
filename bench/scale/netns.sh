#!/bin/bash
# Several hosts on one machine: network namespaces joined by a bridge, with limited bandwidth. Runs pretraining by mpirun,
# then takes a link down and slows a rank. Needs root, iproute2, tc and Open MPI.
# Usage: bench/scale/netns.sh BUILD_DIR [HOSTS] [MBIT], from the source folder.
. tests/counted.sh
. tests/ranks_fixture.sh
hosts=${2-3} rate=${3-200}
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
name=ses$$

close_net()
{
    for ((i = 0; i < hosts; i++)); do ip netns del "$name-$i" 2>/dev/null; done
    ip link del "$name" 2>/dev/null
    rm -rf "$tmp"
}
trap close_net EXIT
trap "exit 1" TERM INT

# Host i is the namespace NAME-i with address 10.77.0.(i + 1); this shell's namespace has 10.77.0.254.
open_net()
{
    ip link add "$name" type bridge && ip addr add 10.77.0.254/24 dev "$name" && ip link set "$name" up || return 1
    for ((i = 0; i < hosts; i++)); do
        ip netns add "$name-$i" && ip link add "v$i-$$" type veth peer name eth0 netns "$name-$i" &&
            ip link set "v$i-$$" master "$name" up && ip -n "$name-$i" addr add 10.77.0.$((i + 1))/24 dev eth0 &&
            ip -n "$name-$i" link set eth0 up && ip -n "$name-$i" link set lo up &&
            ip netns exec "$name-$i" tc qdisc add dev eth0 root tbf rate "${rate}mbit" burst 256kb latency 50ms &&
            tc qdisc add dev "v$i-$$" root tbf rate "${rate}mbit" burst 256kb latency 50ms || return 1
    done
}
open_net || { echo 'netns.sh: network namespaces are not possible here' >&2; exit 1; }

# mpirun starts its daemon on a host by this agent instead of ssh: AGENT HOST COMMAND.
cat >"$tmp/agent" <<END
#!/bin/bash
host=\$1
shift
exec ip netns exec $name-\$((\${host##*.} - 1)) bash -c "\$*"
END
chmod +x "$tmp/agent"
for ((i = 1; i <= hosts; i++)); do echo "10.77.0.$i slots=1"; done >"$tmp/hosts"

awk 'BEGIN { srand(1); for (i = 0; i < 900; i++) { w = int(rand() * 40); s = ""
    for (j = 0; j < 4 + i % 9; j++) { s = s " w" w; w = (w * 7 + 3) % 40 } print s; if (i % 6 == 5) print "" } }' >"$tmp/text"
"$sesame" train-tokenizer --type wordpiece --vocab-size 200 -q -o "$tmp/t.json" "$tmp/text" || exit 1
"$sesame" corpus build --tokenizer "$tmp/t.json" --held-out 20% -o "$tmp/c" "$tmp/text" >"$tmp/out" || exit 1
run=(pretrain -c "$tmp/c" --tokenizer "$tmp/t.json" -p bert-tiny --threads 1 -o out -q --lanes 4 --batch-size 8 --lr 1e-3
    --eval-every 20 --save-every 10 --keep 2)

# FOLDER, then options of sesame: a rank on each host. The process id of mpirun is in $tmp/mpirun.
cluster()
{
    folder=$1
    shift
    mkdir -p "$tmp/$folder"
    (cd "$tmp/$folder" && echo "$BASHPID" >"$tmp/mpirun" && exec mpirun --hostfile "$tmp/hosts" -n "$hosts" --mca plm_rsh_agent "$tmp/agent" \
        --mca btl tcp,self --mca btl_tcp_if_include 10.77.0.0/24 --mca oob_tcp_if_include 10.77.0.0/24 \
        --mca routed direct "$bin" "$@" >"$tmp/out" 2>"$tmp/err")
}

# Process ids of the ranks on the hosts.
rank_pids()
{
    for ((i = 0; i < hosts; i++)); do
        for pid in $(ip netns pids "$name-$i"); do
            [ "$(cat "/proc/$pid/comm" 2>/dev/null)" = sesame ] && echo "$pid"
        done
    done
}

line() { grep '^sesame: ' "$tmp/err" | tee "$tmp/lines" | head -1; } # of sesame, not of mpirun
now() { date +%s%N; }
since() { awk -v a="$1" -v b="$(now)" 'BEGIN { printf "%.1f", (b - a) / 1e9 }'; }

ranks 1 whole "${run[@]}" --steps 40
begin=$(now)
cluster three "${run[@]}" --steps 40
that 'mpirun on several hosts' "[ $? -eq 0 ]"
that 'the same bytes as one rank' 'same_folder whole three'
echo "$hosts hosts, $rate Mbit/s: 40 updates in $(since "$begin") s"

cluster broken "${run[@]}" --steps 100000 --rank-timeout 5 &
job=$!
reaches broken 25
begin=$(now)
ip link set "v$((hosts - 1))-$$" down
until [ -z "$(rank_pids)" ] || awk -v t="$(since "$begin")" 'BEGIN { exit t < 120 }'; do sleep 0.2; done
ended=$(since "$begin")
that 'all ranks end' '[ -z "$(rank_pids)" ]'
sleep 2
kill -9 "$(cat "$tmp/mpirun")" 2>/dev/null # Open MPI 4.1 itself waits for the lost daemon, with or without keepalive
wait $job 2>/dev/null
for pid in $(ip netns pids "$name-$((hosts - 1))"); do kill -9 "$pid"; done
echo "a lost link: all ranks had ended after $ended s: $(line)"
that 'one line names the rank' "[ \$(wc -l <'$tmp/lines') -eq 1 ] && grep -q 'rank $((hosts - 1)) on ' '$tmp/lines'"
ip link set "v$((hosts - 1))-$$" up
sleep 1
cluster broken pretrain -o out --resume -q --steps 100000 &
job=$!
last=$(tail -1 "$tmp/broken/out/log.jsonl" | sed 's/.*"step": //; s/}.*//')
reaches broken $((last + 20))
that 'resumed after the lost link' "[ $? -eq 0 ]"
kill -USR1 "$(cat "$tmp/mpirun")"
wait $job
that 'stopped by SIGUSR1' "[ $? -eq 138 ]"

# A slow rank: its link has a tenth of the bandwidth.
ip netns exec "$name-0" tc qdisc replace dev eth0 root tbf rate "$((rate / 10))mbit" burst 64kb latency 50ms
begin=$(now)
cluster slow "${run[@]}" --steps 40
that 'a slow link' "[ $? -eq 0 ]"
that 'a slow link: the same bytes' 'same_folder whole slow'
echo "a rank with $((rate / 10)) Mbit/s: 40 updates in $(since "$begin") s"
ip netns exec "$name-0" tc qdisc replace dev eth0 root tbf rate "${rate}mbit" burst 256kb latency 50ms

# A rank that stops for 3 seconds and continues.
cluster paused "${run[@]}" --steps 40 --rank-timeout 20 &
job=$!
reaches paused 10
victim=$(rank_pids | tail -1)
kill -STOP "$victim" && sleep 3 && kill -CONT "$victim"
wait $job
that 'a rank that was stopped for 3 s' "[ $? -eq 0 ]"
that 'stopped for 3 s: the same bytes' 'same_folder whole paused'
counted
