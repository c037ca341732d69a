# The pages of `sesame serve` (src/serve/web) as a C file: web_data.c in the build folder, made again when a page changes.
# Used twice: included by CMakeLists.txt it adds the rule; run as a script (cmake -P) it writes the file.

set(web_dir ${CMAKE_CURRENT_LIST_DIR}/../src/serve/web)

if(NOT CMAKE_SCRIPT_MODE_FILE)
  file(GLOB web_pages CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/serve/web/*)
  set(web_data ${CMAKE_BINARY_DIR}/web/web_data.c)
  add_custom_command(OUTPUT ${web_data}
    COMMAND ${CMAKE_COMMAND} -DOUT=${CMAKE_BINARY_DIR}/web -P ${CMAKE_SOURCE_DIR}/cmake/web.cmake
    DEPENDS ${web_pages} cmake/web.cmake COMMENT "Compressing the pages of sesame serve" VERBATIM)
  add_custom_target(sesame-web DEPENDS ${web_data}) # one target, as several libraries contain the file
  return()
endif()

set(type_html "text/html; charset=utf-8")
set(type_css "text/css; charset=utf-8")
set(type_js "text/javascript; charset=utf-8")
set(type_svg "image/svg+xml")
find_program(GZIP gzip)
file(MAKE_DIRECTORY ${OUT})
file(GLOB pages ${web_dir}/*)
list(SORT pages)
set(symbols "")
set(table "")
set(n 0)
foreach(page ${pages})
  get_filename_component(name ${page} NAME)
  get_filename_component(ending ${page} LAST_EXT)
  string(SUBSTRING "${ending}" 1 -1 ending)
  if(NOT DEFINED type_${ending})
    message(FATAL_ERROR "${page}: no content type is known for .${ending}: add one to cmake/web.cmake")
  endif()
  # Small files stay readable for clients that do not accept gzip.
  file(SIZE ${page} size)
  set(data ${OUT}/${name})
  set(gzip false)
  if(GZIP AND size GREATER 4096)
    set(data ${OUT}/${name}.gz)
    execute_process(COMMAND ${GZIP} -9nc ${page} OUTPUT_FILE ${data} RESULT_VARIABLE status)
    if(NOT status EQUAL 0)
      message(FATAL_ERROR "gzip failed on ${page}: ${status}")
    endif()
    set(gzip true)
  else()
    file(COPY ${page} DESTINATION ${OUT})
  endif()
  file(SIZE ${data} size)
  file(SHA256 ${page} hash)
  string(SUBSTRING ${hash} 0 16 hash)
  set(path "/ui/${name}")
  if(name STREQUAL "index.html")
    set(path "/")
  elseif(name STREQUAL "docs.html")
    set(path "/docs")
  endif()
  string(APPEND symbols "extern const unsigned char ses_web_data_${n}[];\n"
    "__asm__(\".pushsection .rodata\\n\"\n        \"ses_web_data_${n}:\\n\"\n"
    "        \".incbin \\\"${data}\\\"\\n\"\n        \".popsection\\n\");\n")
  string(APPEND table "    { \"${path}\", \"${type_${ending}}\", ses_web_data_${n}, ${size}, ${gzip}, \"\\\"${hash}\\\"\" },\n")
  math(EXPR n "${n} + 1")
endforeach()
file(WRITE ${OUT}/web_data.c "/* Written by cmake/web.cmake. */\n#include \"serve/web_files.h\"\n\n${symbols}\n"
  "const ses_web_file ses_web_files[] = {\n${table}    { 0 },\n};\n")
