# The extension of the Python package, for any Python from 3.11 on (its stable ABI): build/_sesame.abi3.so. Built if
# Python's headers are found. python/backend/sesame_build.py makes a wheel of it.
option(SESAME_PYTHON "the extension of the Python package, where the headers of Python 3.11 or later are found" ON)
set(SESAME_PYTHON_INCLUDE "" CACHE PATH "folder of Python.h; empty: that of python3")
if(SESAME_PYTHON AND NOT SESAME_FUZZ)
  set(python_include "${SESAME_PYTHON_INCLUDE}")
  if(NOT python_include)
    execute_process(COMMAND python3 -c "import sys, sysconfig
if sys.version_info >= (3, 11): print(sysconfig.get_path('include'))"
      OUTPUT_VARIABLE python_include OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  endif()
  if(python_include AND EXISTS ${python_include}/Python.h)
    file(GLOB python_sources CONFIGURE_DEPENDS python/src/*.c)
    add_library(sesame-python MODULE ${python_sources})
    # Python's headers are not ours to warn about. Its tables of names and slots are not const.
    target_include_directories(sesame-python SYSTEM PRIVATE ${python_include})
    target_compile_options(sesame-python PRIVATE -Wno-pedantic -Wno-write-strings)
    target_link_libraries(sesame-python PRIVATE sesame)
    target_link_options(sesame-python PRIVATE -Wl,--exclude-libs,ALL -Wl,--gc-sections
      -Wl,--version-script=${CMAKE_SOURCE_DIR}/python/src/sesame.map)
    set_target_properties(sesame-python PROPERTIES PREFIX "" OUTPUT_NAME _sesame SUFFIX .abi3.so
      LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR} LINK_DEPENDS ${CMAKE_SOURCE_DIR}/python/src/sesame.map)
  endif()
endif()
