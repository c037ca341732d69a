# The CUDA module, sesame-cuda.so: the kernels, the GPU device, and the few files of src/base they need. The library opens
# it at run time (src/tensor/cuda_module.h). nvcc is called by custom commands: the project's language stays C, and its
# warning flags are not nvcc's. Objects contain machine code for Hopper and PTX, which the driver compiles for other GPUs.
# The CUDA runtime is linked statically; cuBLASLt is loaded at run time.
find_package(CUDAToolkit 12.1 REQUIRED) # kernel arguments of more than 4 KB: optim_cuda.cu
file(GLOB_RECURSE cuda_sources CONFIGURE_DEPENDS src/kernel/cuda/*.cu)
set(nvcc_flags -std=c++17 -O3 --extended-lambda -Xcompiler=-fPIC,-fvisibility=hidden,-Wall,-Wextra
  -gencode=arch=compute_90a,code=sm_90a -gencode=arch=compute_80,code=compute_80
  -DSES_CUDA_LIBRARIES="${CUDAToolkit_LIBRARY_DIR}"
  -I${CMAKE_SOURCE_DIR}/src -I${CMAKE_SOURCE_DIR}/include)
if(SESAME_WERROR)
  list(APPEND nvcc_flags -Werror=all-warnings)
endif()
add_library(sesame-cuda MODULE src/tensor/cuda/gpu_device.c src/base/err.c src/base/alloc.c)
set_target_properties(sesame-cuda PROPERTIES PREFIX "" LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}
  LINK_DEPENDS ${CMAKE_SOURCE_DIR}/cmake/cuda.map)
target_include_directories(sesame-cuda PRIVATE include src ${CUDAToolkit_INCLUDE_DIRS})
target_link_options(sesame-cuda PRIVATE -Wl,-z,defs,--as-needed,--version-script=${CMAKE_SOURCE_DIR}/cmake/cuda.map)
target_link_libraries(sesame-cuda PRIVATE CUDA::cudart_static Threads::Threads ${CMAKE_DL_LIBS} rt stdc++ m)
foreach(source ${cuda_sources})
  get_filename_component(name ${source} NAME_WE)
  set(object ${CMAKE_BINARY_DIR}/cuda/${name}.o)
  add_custom_command(OUTPUT ${object} DEPENDS ${source} DEPFILE ${object}.d VERBATIM
    COMMENT "Building CUDA object ${name}.o"
    COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_BINARY_DIR}/cuda
    COMMAND ${CMAKE_C_COMPILER_LAUNCHER} ${CUDAToolkit_NVCC_EXECUTABLE} ${nvcc_flags} -MD -MT ${object} -MF ${object}.d
    -c ${source} -o ${object})
  target_sources(sesame-cuda PRIVATE ${object})
  set_source_files_properties(${object} PROPERTIES EXTERNAL_OBJECT ON GENERATED ON)
endforeach()
install(TARGETS sesame-cuda LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/sesame)
