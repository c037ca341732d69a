# Sourced by ./demo and ./check: installs missing Debian packages. Uses the network only if a package is missing.

# have PACKAGE: its program or header is present, installed by any means.
have() {
    case $1 in
    gcc) command -v cc >/dev/null 2>&1 || command -v gcc >/dev/null 2>&1 || command -v clang >/dev/null 2>&1 ;;
    libpcre2-dev) [ -f /usr/include/pcre2.h ] || [ -f /usr/local/include/pcre2.h ] ;;
    zlib1g-dev) [ -f /usr/include/zlib.h ] || [ -f /usr/local/include/zlib.h ] ;;
    liblzma-dev) [ -f /usr/include/lzma.h ] || [ -f /usr/local/include/lzma.h ] ;;
    libzstd-dev) [ -f /usr/include/zstd.h ] || [ -f /usr/local/include/zstd.h ] ;;
    libclang-rt-dev) find /usr/lib /usr/local/lib -name 'libclang_rt.fuzzer*' 2>/dev/null | grep -q . ;;
    libc6-dev) [ -f /usr/include/stdio.h ] ;;
    libcurl4) find /usr/lib /usr/local/lib -name 'libcurl*.so.4' 2>/dev/null | grep -q . ;;
    openmpi-bin) command -v mpirun >/dev/null 2>&1 ;;
    nginx-light) command -v nginx >/dev/null 2>&1 || [ -x /usr/sbin/nginx ] ;;
    fonts-dejavu-core) [ -d /usr/share/fonts/truetype/dejavu ] ;;
    chromium-driver) command -v chromedriver >/dev/null 2>&1 ;;
    python3-selenium) /usr/bin/python3 -c 'import selenium' >/dev/null 2>&1 ;;
    python3-pip) python3 -m pip --version >/dev/null 2>&1 ;;
    python3-dev) # only needed by the Python package, which needs 3.11
        python3 -c 'import os, sys, sysconfig
sys.exit(not os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h")))' 2>/dev/null ;;
    gcc-aarch64-linux-gnu) command -v aarch64-linux-gnu-gcc >/dev/null 2>&1 ;;
    libc6-dev-arm64-cross) [ -f /usr/aarch64-linux-gnu/include/stdio.h ] ;;
    qemu-user) command -v qemu-aarch64 >/dev/null 2>&1 || command -v qemu-aarch64-static >/dev/null 2>&1 ;;
    abigail-tools) command -v abidiff >/dev/null 2>&1 ;;
    xz-utils) command -v xz >/dev/null 2>&1 ;;
    *) command -v "$1" >/dev/null 2>&1 ;;
    esac
}

missing() {
    for package in "$@"; do
        have "$package" || printf '%s ' "$package"
    done
}

as_root() {
    if [ "$(id -u)" -eq 0 ]; then "$@"; else sudo "$@"; fi
}

# install PACKAGE...: true if all are present afterwards.
install() {
    packages=$(missing "$@")
    [ -n "$packages" ] || return 0
    if ! command -v apt-get >/dev/null 2>&1; then
        echo "Missing: $packages(names of Debian packages; apt-get is not available)." >&2
        return 1
    fi
    if [ "$(id -u)" -ne 0 ] && ! command -v sudo >/dev/null 2>&1; then
        echo "Missing packages, and neither root nor sudo to install them. As root: apt-get install $packages" >&2
        return 1
    fi
    echo "Installing: $packages" >&2
    log=$(mktemp)
    # shellcheck disable=SC2086  # a list of names
    if ! as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends $packages >"$log" 2>&1; then
        as_root apt-get update >>"$log" 2>&1 # a fresh machine has no package lists
        as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends $packages >>"$log" 2>&1 ||
            tail -n 5 "$log" >&2
    fi
    rm -f "$log"
    packages=$(missing "$@")
    [ -z "$packages" ] || { echo "Could not install: $packages" >&2; return 1; }
}

# What building and the test suite need; false: they cannot do without a package.
install_tools() {
    install gcc libc6-dev make cmake || return
    install xz-utils || echo 'Continuing without xz: tests against encodings by the tokenizers library are skipped.' >&2
    install libpcre2-dev || echo 'Continuing without PCRE2: tokenizers with unusual regular expressions are refused.' >&2
    install zlib1g-dev liblzma-dev libzstd-dev ||
        echo 'Continuing without zlib, liblzma or libzstd: compressed texts are refused.' >&2
    install g++ pkg-config || echo 'Continuing without g++ or pkg-config: some checks of the installation are skipped.' >&2
    install clang-format || echo 'Continuing without clang-format: formatting is not checked.' >&2
}
