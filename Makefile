# A thin front for CMake (CMakePresets.json): `make` leaves build/sesame, build/golden and build/libsesame.a.
#   make [all]    build               make check    build, run every test, lint
#   make check CUDA=1                 the same on a machine with a GPU, its kernels too
#   make install  PREFIX, DESTDIR     make bench    time this machine
#   make asan tsan                    the whole suite under sanitizers
#   make clang-check                  part of it, and the seeds of each fuzz target, with clang's
#   make ci-full                      all that continuous integration knows: .ci/run without omissions
#   make check-large                  memory of the largest models
#   make wheel                        the Python package with models and command, build/sesame-*.whl
#   make deb                          Debian packages in build/deb; CUDA=1: the CUDA module too
#   make abi                          compare the public headers with packaging/abi
#   make dist                         source tarball and static commands (x86_64, aarch64) in build/dist
#   make debug format lint fuzz uninstall clean
MAKEFLAGS += --no-print-directory
PREFIX ?= /usr/local
JOBS ?= $(shell nproc 2>/dev/null || echo 2)
# Tests wait for servers and disks: one more at a time than there are cores.
TEST_JOBS ?= $(shell expr $(JOBS) + 1)
BENCH ?= gemm ops model tokenizer pipelines
FUZZ_SECONDS ?= 60

all: release

release debug ref-only cuda:
	@cmake --preset $@ $(CMAKE_FLAGS) >/dev/null
	@cmake --build $(if $(filter release,$@),build,build/$@) --parallel $(JOBS) $(if $(ONLY),--target $(ONLY))

check: $(if $(CUDA),cuda,release)
	@tools/run-tests $(if $(CUDA),build/cuda,build) $(TEST_JOBS)
	@$(if $(CUDA),tools/check-cuda,tools/lint build)

# The largest models of the generation in sparse files: what opening touches, what a pass takes. 12 GB of memory.
check-large: release
	@dir=$$(mktemp -d) && { build/large $$dir; code=$$?; rm -r $$dir; exit $$code; }

# gcc 13 and later misalign stack slots if the runtime moves frames to its own stack (GCC bug 110027).
SANITIZER_OPTIONS = ASAN_OPTIONS=detect_stack_use_after_return=0

asan tsan:
	@cmake --preset $@ $(CMAKE_FLAGS) >/dev/null
	@cmake --build build/$@ --parallel $(JOBS)
	@$(SANITIZER_OPTIONS) tools/run-tests build/$@ $(TEST_JOBS)

bench: release
	@for what in $(BENCH); do build/sesame bench $$what || exit 1; done

# Builds only the installed targets, not the tests. The prefix decides the library folder (Debian: lib/TRIPLET below /usr), so
# it is set before, not while, installing.
install:
	@$(MAKE) --no-print-directory release ONLY='sesame-bin sesame sesame-shared share' \
		CMAKE_FLAGS='$(CMAKE_FLAGS) -DCMAKE_INSTALL_PREFIX=$(PREFIX)'
	@DESTDIR='$(DESTDIR)' cmake --install build

deb:
	@JOBS=$(JOBS) packaging/build-deb $(if $(CUDA),--cuda)

# Programs compiled against the baseline in packaging/abi still work. UPDATE=1 writes the baseline.
abi:
	@packaging/abi-check $(if $(UPDATE),--update)

STATIC ?= x86_64 aarch64
dist:
	@packaging/source-tarball build/dist
	@JOBS=$(JOBS) packaging/static-build $(STATIC)

uninstall:
	@test -f build/install_manifest.txt || { echo 'nothing was installed from here'; exit 1; }
	@while read -r file || [ -n "$$file" ]; do rm -fv "$(DESTDIR)$$file"; done <build/install_manifest.txt

fuzz:
	@cmake --preset fuzz $(CMAKE_FLAGS) >/dev/null
	@cmake --build build/fuzz --parallel $(JOBS)
	@JOBS=$(JOBS) tools/run-fuzz build/fuzz $(FUZZ_SECONDS)

# A part of the suite that takes about three minutes: readers of files, kernels, models, threads.
# CLANG_ALL=1 compiles everything else with clang too.
CLANG_TESTS = test_json test_base test_strings test_number test_file test_utf8_valid test_codepoint_offsets \
	test_unigram test_spm test_spaces test_text test_legacy_files test_safetensors test_torch_zip \
	test_torch_legacy test_config test_tables test_examples test_manifest test_vector_index test_metrics \
	test_kernels_ref test_gemm test_attention_i8 test_int8 test_tape test_ops \
	test_comm test_model test_generate test_runner test_pipeline_api test_save test_adapter test_checkpoint test_trainer

clang-check:
	@cmake --preset clang $(CMAKE_FLAGS) >/dev/null
	@cmake --build build/clang --parallel $(JOBS) --target $(if $(CLANG_ALL),all) fuzzers $(CLANG_TESTS)
	@tools/run-tests build/clang $(TEST_JOBS) $(CLANG_TESTS)
	@JOBS=$(JOBS) tools/run-fuzz build/clang 0

ci-full:
	@.ci/run --full

# The same sources give the same bytes. `pip install ./python` builds and installs it.
wheel:
	@JOBS=$(JOBS) python3 python/backend/sesame_build.py build

lint:
	@tools/lint build

format:
	find src include tests tools bench examples python -name "*.[ch]" -o -name "*.cu" -o -name "*.cuh" | xargs clang-format -i

clean:
	rm -rf build

.PHONY: all release debug ref-only cuda check check-large asan tsan clang-check ci-full bench install uninstall fuzz wheel lint format clean deb dist abi
