# Run by `cmake --install`: installs headers under the paths that other projects include,
# "zoo/models/registry.h" and "zoo/training/trainer.h". Needs SOURCE, the root of the tree; STAGE, a folder to
# write to; DESTINATION; HEADERS, paths from the root. MESSAGES may be MESSAGE_NEVER.
foreach(header IN LISTS HEADERS)
  file(READ ${SOURCE}/${header} text)
  string(REGEX REPLACE "#include \"(apps/)?(data|tokenizer|models|training)/" "#include \"zoo/\\2/" text "${text}")
  string(REGEX REPLACE "^apps/" "" header ${header})
  file(WRITE ${STAGE}/${header} "${text}")
  cmake_path(GET header PARENT_PATH folder)
  file(INSTALL DESTINATION "${DESTINATION}/${folder}" ${MESSAGES} FILES ${STAGE}/${header})
endforeach()
