# What the CUDA module and the library must agree on: the version and the headers that describe the structs they share
# (what src/tensor/cuda_module.h includes; tests/test_cuda_module.sh compares the list). A module with another
# SES_CUDA_ABI is refused when it is opened.
set(cuda_abi_headers src/tensor/cuda_module.h src/tensor/device_impl.h src/base/arena.h src/base/rng.h src/base/thread_pool.h
  src/kernel/kernel.h src/kernel/kernels.def src/kernel/blocks.h src/kernel/cpu_caches.h include/sesame/base.h
  include/sesame/unstable/tensor.h)
set(cuda_abi_text)
foreach(header ${cuda_abi_headers})
  file(SHA256 ${CMAKE_SOURCE_DIR}/${header} hash)
  string(APPEND cuda_abi_text "${hash}")
endforeach()
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${cuda_abi_headers})
string(SHA256 cuda_abi "${cuda_abi_text}")
string(SUBSTRING "${cuda_abi}" 0 12 cuda_abi)
set(SES_CUDA_ABI "${PROJECT_VERSION}-${cuda_abi}")

# The module is looked for in the installed library folder, as seen from the command and from the root.
file(RELATIVE_PATH lib_from_bin ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_LIBDIR})
set_source_files_properties(src/tensor/cuda/gpu_device.c PROPERTIES COMPILE_DEFINITIONS SES_CUDA_ABI="${SES_CUDA_ABI}")
