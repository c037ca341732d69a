# The CUDA kernels. nvcc is called by custom commands: the project's language stays C, and its warning flags are not
# nvcc's. Objects contain machine code for Hopper and PTX, which the driver compiles for other GPUs. The CUDA runtime is
# linked statically and cuBLASLt is loaded at run time, so the command also runs on machines without them.
find_package(CUDAToolkit 12.1 REQUIRED) # kernel arguments of more than 4 KB: optim_cuda.cu
file(GLOB cuda_sources CONFIGURE_DEPENDS src/kernel/cuda/*.cu)
set(nvcc_flags -std=c++17 -O3 --extended-lambda -Xcompiler=-fPIC,-fvisibility=hidden,-Wall,-Wextra
  -gencode=arch=compute_90a,code=sm_90a -gencode=arch=compute_80,code=compute_80
  -DSES_CUDA -DSES_CUDA_LIBRARIES="${CUDAToolkit_LIBRARY_DIR}"
  -I${CMAKE_SOURCE_DIR}/src -I${CMAKE_SOURCE_DIR}/include)
if(SESAME_WERROR)
  list(APPEND nvcc_flags -Werror=all-warnings)
endif()
foreach(source ${cuda_sources})
  get_filename_component(name ${source} NAME_WE)
  set(object ${CMAKE_BINARY_DIR}/cuda/${name}.o)
  add_custom_command(OUTPUT ${object} DEPENDS ${source} DEPFILE ${object}.d VERBATIM
    COMMENT "Building CUDA object ${name}.o"
    COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_BINARY_DIR}/cuda
    COMMAND ${CMAKE_C_COMPILER_LAUNCHER} ${CUDAToolkit_NVCC_EXECUTABLE} ${nvcc_flags} -MD -MT ${object} -MF ${object}.d
    -c ${source} -o ${object})
  target_sources(sesame PRIVATE ${object})
  target_sources(sesame-shared PRIVATE ${object})
  set_source_files_properties(${object} PROPERTIES EXTERNAL_OBJECT ON GENERATED ON)
endforeach()
target_compile_definitions(sesame-objects PRIVATE SES_CUDA)
target_compile_definitions(sesame PUBLIC $<BUILD_INTERFACE:SES_CUDA>)
target_include_directories(sesame-objects PRIVATE ${CUDAToolkit_INCLUDE_DIRS})
target_link_libraries(sesame PUBLIC $<BUILD_INTERFACE:CUDA::cudart_static> $<INSTALL_INTERFACE:${CUDA_cudart_static_LIBRARY}>
  ${CMAKE_DL_LIBS} rt stdc++)
target_link_libraries(sesame-shared PRIVATE CUDA::cudart_static ${CMAKE_DL_LIBS} stdc++)
