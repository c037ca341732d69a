# Scripts and style sheets of standalone pages (src/analysis/page) as a C file: page_data.c in the build folder, made
# again when one changes. Used twice: included by CMakeLists.txt it adds the rule; run as a script (cmake -P) it writes
# the file.

set(page_dir ${CMAKE_CURRENT_LIST_DIR}/../src/analysis/page)

if(NOT CMAKE_SCRIPT_MODE_FILE)
  file(GLOB page_files CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/analysis/page/*)
  set(page_data ${CMAKE_BINARY_DIR}/page/page_data.c)
  add_custom_command(OUTPUT ${page_data}
    COMMAND ${CMAKE_COMMAND} -DOUT=${CMAKE_BINARY_DIR}/page -P ${CMAKE_SOURCE_DIR}/cmake/page.cmake
    DEPENDS ${page_files} cmake/page.cmake COMMENT "Embedding the scripts of standalone pages" VERBATIM)
  add_custom_target(sesame-page DEPENDS ${page_data}) # one target, as several libraries contain the file
  return()
endif()

file(MAKE_DIRECTORY ${OUT})
file(GLOB files ${page_dir}/*.js ${page_dir}/*.css)
list(SORT files)
set(symbols "")
set(table "")
set(n 0)
foreach(file ${files})
  get_filename_component(name ${file} NAME)
  file(COPY ${file} DESTINATION ${OUT})
  file(SIZE ${file} size)
  file(SHA256 ${file} hash)
  string(REGEX REPLACE "(..)" "0x\\1, " bytes ${hash})
  string(APPEND symbols "extern const unsigned char ses_page_data_${n}[];\n"
    "__asm__(\".pushsection .rodata\\n\"\n        \"ses_page_data_${n}:\\n\"\n"
    "        \".incbin \\\"${OUT}/${name}\\\"\\n\"\n        \".popsection\\n\");\n")
  string(APPEND table "    { \"${name}\", ses_page_data_${n}, ${size}, { ${bytes} } },\n")
  math(EXPR n "${n} + 1")
endforeach()
file(WRITE ${OUT}/page_data.c "/* Written by cmake/page.cmake. */\n#include \"figure/page_file.h\"\n\n${symbols}\n"
  "const ses_page_file ses_page_files[] = {\n${table}    { 0 },\n};\n")
