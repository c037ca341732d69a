# Communicators under mpirun: 2 and 3 ranks. Usage: sh tests/test_comm_mpi.sh BUILD_DIR
build=$1
passed=0 failed=0
if ! command -v mpirun >/dev/null 2>&1; then
    echo 'skipped: mpirun is not installed (Debian: openmpi-bin)'
    echo '0 passed, 0 failed, 2 skipped'
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
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
