# Communicators under mpirun: 2 and 3 ranks, sesame doctor --mpi, and calls of MPI that fail. Usage: sh tests/test_comm_mpi.sh BUILD_DIR
build=$1
passed=0 failed=0 skipped=0
if ! command -v mpirun >/dev/null 2>&1; then
    echo 'skipped: mpirun is not installed (Debian: openmpi-bin)'
    echo '0 passed, 0 failed, 29 skipped'
    exit 0
fi
# Open MPI refuses root, as which containers run, and more ranks than cores.
OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_ALLOW_RUN_AS_ROOT OMPI_ALLOW_RUN_AS_ROOT_CONFIRM
# Leaks of Open MPI itself are not of interest.
ASAN_OPTIONS=detect_leaks=0:${ASAN_OPTIONS-}
export ASAN_OPTIONS
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT

# ranks N TRANSPORT: all collectives
ranks() { timeout 120 mpirun --oversubscribe -n "$1" "$build/comm_rank" "$2" >"$dir/out" 2>&1 || { cat "$dir/out" && false; }; }

# verify NAME COMMAND...
verify() {
    name=$1
    shift
    if "$@" >"$dir/log" 2>&1; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "failed: $name"
        cat "$dir/log"
    fi
}

for n in 2 3; do
    for transport in mpi tcp; do
        verify "$n ranks, $transport" ranks $n $transport
        verify "$n ranks use $transport" grep -q "; $n ranks by $transport" "$dir/out"
    done
done

# doctor: one table from rank 0
doctor() { timeout 120 mpirun --oversubscribe -n 2 "$build/sesame" doctor --mpi "$@" >"$dir/out" 2>&1; }
verify 'doctor --mpi' doctor
verify 'doctor names the transport' grep -q '2, by mpi (Open MPI' "$dir/out"
verify 'doctor measures the link' grep -q 'rank 0 - rank 1 .*GB/s' "$dir/out"
# a GPU that only rank 1 has matters to training on GPUs alone
mixed() {
    timeout 120 mpirun --oversubscribe -n 1 "$build/sesame" doctor --mpi --quick "$@" : -n 1 \
        -x SESAME_CUDA_MODULE="$build/fake-cuda/current/sesame-cuda.so" "$build/sesame" doctor --mpi --quick "$@" >"$dir/out" 2>&1
}
if [ -e "$build/fake-cuda/current/sesame-cuda.so" ] && ! "$build/sesame" doctor --quick | grep -q '^GPU 0'; then
    verify 'doctor with a GPU on one rank' mixed
    verify 'doctor names the GPU' grep -q 'GPU differs: rank 0 has none, rank 1 on .* has Simulated GPU; only training with --device cuda refuses this' "$dir/out"
    verify 'doctor does not refuse it' sh -c "! grep -q '; training refuses this' '$dir/out'"
    verify 'doctor --json with a GPU on one rank' mixed --json
    verify 'no difference of CPUs' sh -c "tr -d ' \n' <'$dir/out' | grep -q '\"differences\":\[\],\"differences_of_gpus\":\[\"GPU'"
fi
verify 'doctor --mpi --json' doctor --json --quick
verify 'its JSON is valid' sh -c "\"$build/json_valid\" <\"$dir/out\""

# A killed rank: one of the others reports it, though mpirun ends them all.
killed() {
    rm -f "$dir"/error.*
    KILL_RANK=$1 timeout 60 mpirun --oversubscribe -n 3 "$build/comm_rank" mpi "$dir/error" >"$dir/out" 2>&1
    code=$?
    cat "$dir"/error.*
    [ $code -ne 0 ] && [ $code -ne 124 ] && [ "$(cat "$dir"/error.* | grep -c '^report')" -eq 1 ] &&
        [ "$(sed 's/^report: //' "$dir"/error.* | sort -u | wc -l)" -eq 1 ] &&
        grep -q "rank $1 on .*, update \(9\|10\): its process ended" "$dir"/error.*
}
for rank in 0 1 2; do verify "rank $rank is killed" killed $rank; done

# The n-th call of MPI fails on one rank: both ranks end, one reports, and the error names the call.
real=$(ldconfig -p 2>/dev/null | sed -n 's/.*libmpi\.so\.40 .* => //p' | head -n 1)
[ -n "$real" ] || real=$(ls /usr/lib/*/libmpi.so.40 /usr/lib64/openmpi/lib/libmpi.so.40 2>/dev/null | head -n 1)
cc=${CC-cc}
# The wrapper needs the real library by its path, since both have the same name.
if [ -n "$real" ] && echo 'int unused;' >"$dir/unused.c" && mkdir "$dir/lib" &&
    $cc -shared -fPIC -o "$dir/stub.so" -Wl,-soname,"$real" "$dir/unused.c" &&
    $cc -shared -fPIC -o "$dir/lib/libmpi.so.40" tests/failing_mpi.c -Wl,--no-as-needed "$dir/stub.so"; then
    # with_failure RANK N: 0 if the run failed as it should, 2 if it has fewer calls
    with_failure() {
        rm -f "$dir"/error.*
        LD_LIBRARY_PATH=$dir/lib FAIL_RANK=$1 FAIL_CALL=$2 timeout 60 \
            mpirun --oversubscribe -n 2 -x LD_LIBRARY_PATH "$build/comm_rank" mpi "$dir/error" >"$dir/out" 2>&1
        code=$?
        [ $code -ne 0 ] || return 2
        [ $code -ne 124 ] && grep -q 'MPI_[A-Z][a-z_]*: error 16' "$dir/error.$1" || {
            echo "exit code $code" && cat "$dir/out" "$dir"/error.*
            return 1
        }
        [ ! -f "$dir/error.0" ] || [ ! -f "$dir/error.1" ] || ! grep -q '^report' "$dir"/error.* || {
            [ "$(sed 's/^report: //' "$dir"/error.* | sort -u | wc -l)" -eq 1 ] &&
                [ "$(cat "$dir"/error.* | grep -c '^report')" -eq 1 ] || { cat "$dir"/error.* && return 1; }
        }
    }
    for n in 1 2 3 4 5 6 7 8 9 11 14 20 40; do
        verify "call $n of MPI fails" with_failure $((n % 2)) $n
    done
else
    skipped=$((skipped + 1))
    echo 'skipped: failing calls of MPI, for which the real library or a compiler was not found'
fi
printf '%d passed, %d failed' $passed $failed
[ $skipped -eq 0 ] || printf ', %d skipped' $skipped
echo
[ "$failed" -eq 0 ]
