# Vector levels. FAMILY_simd.c is compiled once per vector level, FAMILY_bf16.c once per level with bf16 products, FAMILY_tile.c
# for levels with tiles, each with that level's flags: `simd_levels` of them. A file that exists for one level only is named
# *_LEVEL.c and is always compiled.
set(SESAME_LEVELS all CACHE STRING "vector levels of the kernels: all of the architecture, or native: what this machine needs")
set_property(CACHE SESAME_LEVELS PROPERTY STRINGS all native)

set(flags_avx2 -mavx2 -mfma -mf16c)
set(flags_avx512 -mavx512f -mavx512bw -mavx512vl -mavx512dq ${flags_avx2})
set(flags_avx512bf16 -mavx512bf16 -mavx512vnni ${flags_avx512})
set(flags_amx -DSES_AMX -mamx-tile -mamx-int8 -mamx-bf16 ${flags_avx512bf16}) # compilers differ in the macros of AMX
set(flags_neon)
if(CMAKE_C_COMPILER_ID STREQUAL "GNU") # scheduling before register allocation spills accumulators of tiles
  set(flags_neon -fno-schedule-insns)
endif()
set(flags_neonbf16 -march=armv8.2-a+bf16 ${flags_neon})
set(families_avx2 simd)
set(families_avx512 simd)
set(families_avx512bf16 bf16)
set(families_amx bf16|tile)
set(families_neon simd)
set(families_neonbf16 bf16)

set(all_levels)
if(SESAME_REF_ONLY)
  add_compile_definitions(SES_REF_ONLY)
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  set(all_levels avx2 avx512 avx512bf16 amx)
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64")
  set(all_levels neon neonbf16)
else() # no vectors of other architectures yet
  add_compile_definitions(SES_REF_ONLY)
endif()

# The highest vector level of this machine and what it has of bf16 and tiles (ses_isa_best). Names of Linux.
function(sesame_native_levels out)
  file(STRINGS /proc/cpuinfo line LIMIT_COUNT 1 REGEX "^(flags|Features)[ \t]*:")
  string(REGEX REPLACE "[ \t:]+" ";" has "${line}")
  set(levels)
  foreach(level ${all_levels})
    set(needs_avx2 avx2 fma f16c)
    set(needs_avx512 ${needs_avx2} avx512f avx512bw avx512vl avx512dq)
    set(needs_avx512bf16 ${needs_avx512} avx512_bf16 avx512_vnni)
    set(needs_amx ${needs_avx512bf16} amx_tile amx_int8 amx_bf16)
    set(needs_neon asimd)
    set(needs_neonbf16 asimd bf16)
    set(missing ${needs_${level}})
    list(REMOVE_ITEM missing ${has})
    if(NOT missing)
      list(APPEND levels ${level})
    endif()
  endforeach()
  if(avx512 IN_LIST levels) # has every kernel that AVX2 has
    list(REMOVE_ITEM levels avx2)
  endif()
  set(${out} "${levels}" PARENT_SCOPE)
endfunction()

set(simd_levels ${all_levels})
if(SESAME_LEVELS STREQUAL "native" AND NOT CMAKE_CROSSCOMPILING AND EXISTS /proc/cpuinfo)
  sesame_native_levels(simd_levels)
elseif(NOT SESAME_LEVELS MATCHES "^(all|native)$")
  message(FATAL_ERROR "SESAME_LEVELS is '${SESAME_LEVELS}': expected all or native")
endif()

set(without_levels) # definitions for the files that include src/kernel/levels.h
foreach(level ${all_levels})
  if(NOT level IN_LIST simd_levels)
    string(TOUPPER ${level} name)
    list(APPEND without_levels SES_WITHOUT_${name})
  endif()
endforeach()

# The intrinsics of x86 take most of the time that small kernels take to compile: 0.3 of 0.4 s. Launchers (ccache) store
# compilations with precompiled headers only with settings of their own.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64" AND CMAKE_C_COMPILER_ID STREQUAL "GNU" AND NOT SESAME_SANITIZE
    AND NOT CMAKE_C_COMPILER_LAUNCHER)
  set(precompile_intrinsics ON)
else()
  set(precompile_intrinsics OFF)
endif()
