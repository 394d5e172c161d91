cmake_policy(VERSION 3.25)  # an install script has no policies of its own before CMake 4

# Run by `cmake --install`: installs the public headers, whose first comment shows their use, and those that they
# include, under the paths that other projects include, "zoo/models/registry.h" and "zoo/training/trainer.h". Needs SOURCE,
# the root of the tree; STAGE, a folder to write to; DESTINATION; HEADERS, paths from the root. MESSAGES may be
# MESSAGE_NEVER.
set(_installed)
foreach(header IN LISTS HEADERS)
  file(STRINGS ${SOURCE}/${header} _use REGEX "^/// Use:$")
  if(_use)
    list(APPEND _installed ${header})
  endif()
endforeach()
set(_left ${_installed})
while(_left)
  list(POP_FRONT _left header)
  file(STRINGS ${SOURCE}/${header} _includes REGEX "^#include \"")
  foreach(included IN LISTS _includes)
    string(REGEX REPLACE "^#include \"(.*)\"$" "\\1" included ${included})
    if(included IN_LIST HEADERS AND NOT included IN_LIST _installed)
      list(APPEND _installed ${included})
      list(APPEND _left ${included})
    endif()
  endforeach()
endwhile()

foreach(header IN LISTS _installed)
  file(READ ${SOURCE}/${header} text)
  string(REGEX REPLACE "#include \"(apps/)?(data|tokenizer|models|training)/" "#include \"zoo/\\2/" text "${text}")
  string(REGEX REPLACE "^apps/" "" header ${header})
  file(WRITE ${STAGE}/${header} "${text}")
  cmake_path(GET header PARENT_PATH folder)
  file(INSTALL DESTINATION "${DESTINATION}/${folder}" ${MESSAGES} FILES ${STAGE}/${header})
endforeach()
