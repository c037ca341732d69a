# Flags that make memory errors harder to exploit, each where the compiler has it:
#   -fcf-protection           indirect jumps need a marked target, returns use a shadow stack (x86)
#   -fstack-clash-protection  large stack frames touch each page, so that the guard page is not skipped
#   _FORTIFY_SOURCE           the C library checks the sizes of buffers, at level 3 also computed ones; needs
#                             optimization; sanitizers replace it
#   relro, now, PIE           addresses of functions are read-only after the start, and random
# tests/test_hardening.sh inspects the command and the library.
include(CheckCCompilerFlag)
include(CheckCSourceCompiles)
include(CheckPIESupported)

foreach(flag -fcf-protection -fstack-clash-protection)
  string(MAKE_C_IDENTIFIER "SESAME_HAS${flag}" has)
  set(CMAKE_REQUIRED_FLAGS -Werror) # clang warns of flags that it ignores
  check_c_compiler_flag(${flag} ${has})
  unset(CMAKE_REQUIRED_FLAGS)
  if(${has})
    add_compile_options(${flag})
  endif()
endforeach()

# Level 3 needs both a compiler and a C library that have it; the library's header defines the level in use.
if(NOT SESAME_SANITIZE AND NOT SESAME_FUZZ AND NOT SESAME_QUICK AND NOT CMAKE_BUILD_TYPE STREQUAL Debug)
  set(CMAKE_REQUIRED_FLAGS "-O2 -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3")
  check_c_source_compiles("
    #include <stdio.h>
    #if !defined __USE_FORTIFY_LEVEL || __USE_FORTIFY_LEVEL < 3
    #error not supported
    #endif
    int main(void) { return 0; }" SESAME_HAS_FORTIFY_3)
  unset(CMAKE_REQUIRED_FLAGS)
  if(SESAME_HAS_FORTIFY_3)
    set(fortify 3)
  else()
    set(fortify 2)
  endif()
  add_compile_options(-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=${fortify}) # some compilers define a level themselves
endif()

check_pie_supported(LANGUAGES C)
add_link_options(-Wl,-z,relro,-z,now)

# gcc 12 for aarch64 stops with an internal error if it vectorizes loops over fmax; then they call the C library.
set(CMAKE_REQUIRED_FLAGS "-O3")
check_c_source_compiles("
  #include <math.h>
  double most(const float *x, long n)
  {
      double max = -INFINITY;
      for (long i = 0; i < n; i++) max = fmax(max, (double)x[i]);
      return max;
  }
  int main(void) { return 0; }" SESAME_VECTORIZES_FMAX)
unset(CMAKE_REQUIRED_FLAGS)
if(NOT SESAME_VECTORIZES_FMAX)
  add_compile_options(-fno-builtin-fmax -fno-builtin-fmaxf -fno-builtin-fmin -fno-builtin-fminf)
endif()
