# Installed files: the libraries with headers, pkg-config file and CMake package, the command, the models, task files, units of
# systemd, manual pages and shell completions. The command generates the last two.
include(GNUInstallDirs)

install(TARGETS sesame sesame-shared EXPORT sesame-targets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS sesame-bin RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(DIRECTORY include/sesame DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h" PATTERN "*.def")

if(EXISTS ${CMAKE_SOURCE_DIR}/models) # found by name: src/model/bundled_models.c
  install(DIRECTORY models DESTINATION ${CMAKE_INSTALL_DATADIR}/sesame
    PATTERN compare.txt EXCLUDE PATTERN facts.txt EXCLUDE PATTERN scores.jsonl EXCLUDE)
endif()

install(DIRECTORY tasks DESTINATION ${CMAKE_INSTALL_DATADIR}/sesame) # beside the models: src/tune/eval/eval_task_find.c

# find_package(sesame) gives sesame::sesame (shared) and sesame::static.
include(CMakePackageConfigHelpers)
set(package ${CMAKE_INSTALL_LIBDIR}/cmake/sesame)
configure_package_config_file(cmake/sesame-config.cmake.in ${CMAKE_BINARY_DIR}/sesame-config.cmake
  INSTALL_DESTINATION ${package})
write_basic_package_version_file(${CMAKE_BINARY_DIR}/sesame-config-version.cmake COMPATIBILITY SameMinorVersion)
install(EXPORT sesame-targets NAMESPACE sesame:: DESTINATION ${package})
install(FILES ${CMAKE_BINARY_DIR}/sesame-config.cmake ${CMAKE_BINARY_DIR}/sesame-config-version.cmake
  DESTINATION ${package})

# Relocatable: the prefix is relative to the location of the file.
file(RELATIVE_PATH up "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/")
string(REGEX REPLACE "/$" "" up ${up})
set(pc_prefix "\${pcfiledir}/${up}")
configure_file(cmake/sesame.pc.in ${CMAKE_BINARY_DIR}/sesame.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/sesame.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

# Units of systemd, for the prefix /usr or /usr/local: other prefixes are not searched.
set(SESAME_BINDIR ${CMAKE_INSTALL_FULL_BINDIR})
configure_file(packaging/systemd/sesame.service.in ${CMAKE_BINARY_DIR}/sesame.service @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/sesame.service packaging/systemd/sesame.socket DESTINATION lib/systemd/system)

set(generated)
function(sesame_generate output destination)
  set(path ${CMAKE_BINARY_DIR}/share/${output})
  get_filename_component(folder ${path} DIRECTORY)
  file(MAKE_DIRECTORY ${folder})
  add_custom_command(OUTPUT ${path} COMMAND sesame-bin ${ARGN} > ${path} DEPENDS sesame-bin VERBATIM)
  install(FILES ${path} DESTINATION ${destination})
  set(generated ${generated} ${path} PARENT_SCOPE)
endfunction()

set(man ${CMAKE_INSTALL_MANDIR}/man1)
sesame_generate(man1/sesame.1 ${man} man)
file(STRINGS src/cli/commands.def commands REGEX "^SES_COMMAND\\(")
foreach(line ${commands})
  string(REGEX REPLACE "^SES_COMMAND\\(([a-z0-9_]+)\\).*" "\\1" name ${line})
  string(REPLACE _ - name ${name}) # as the command line spells it
  if(NOT name MATCHES "^(help|man)$")
    sesame_generate(man1/sesame-${name}.1 ${man} man ${name})
  endif()
endforeach()
foreach(list src/task/tasks.def src/analysis/analyses.def) # pipelines and their aliases, analyses
  file(STRINGS ${list} lines REGEX "^SES_(TASK|TASK_ALIAS|ANALYSIS)\\(")
  foreach(line ${lines})
    string(REGEX REPLACE "^[A-Z_]+\\([a-z0-9_]+, \"([a-z0-9-]+)\".*" "\\1" name ${line})
    sesame_generate(man1/sesame-${name}.1 ${man} man ${name})
  endforeach()
endforeach()
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS src/cli/commands.def src/task/tasks.def
  src/analysis/analyses.def)
sesame_generate(bash/sesame ${CMAKE_INSTALL_DATADIR}/bash-completion/completions completion bash)
sesame_generate(zsh/_sesame ${CMAKE_INSTALL_DATADIR}/zsh/site-functions completion zsh)
sesame_generate(fish/sesame.fish ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d completion fish)
add_custom_target(share ALL DEPENDS ${generated})
