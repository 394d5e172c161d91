# Installs the build tree BUILD to a temporary prefix; builds and runs the program in consumer/ against it, with
# find_package and with the pkg-config file; runs the installed tzoo.
set(work ${BUILD}/tests/package/work)
file(REMOVE_RECURSE ${work})

function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT result EQUAL 0)
    list(JOIN ARGN " " command)
    message(FATAL_ERROR "${command}: ${result}\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

set(flags)
if(SANITIZE)
  set(flags -DCMAKE_CXX_FLAGS=-fsanitize=${SANITIZE})
endif()

run(${CMAKE_COMMAND} --install ${BUILD} --config ${CONFIG} --prefix ${work}/installed)

# Moved, because nothing in a package may remember the prefix it was first installed to.
file(RENAME ${work}/installed ${work}/moved)

run(${CMAKE_COMMAND} -S ${CMAKE_CURRENT_LIST_DIR}/consumer -B ${work}/consumer -G ${GENERATOR} -DCMAKE_BUILD_TYPE=${CONFIG}
    -DCMAKE_CXX_COMPILER=${COMPILER} -DCMAKE_CXX_COMPILER_LAUNCHER=${LAUNCHER}
    -DTransformerZoo_DIR=${work}/moved/${LIBDIR}/cmake/TransformerZoo ${flags})
run(${CMAKE_COMMAND} --build ${work}/consumer --config ${CONFIG})

# Where a dependency is missing, the message names the package that has it.
execute_process(
  COMMAND ${CMAKE_COMMAND} -S ${CMAKE_CURRENT_LIST_DIR}/consumer -B ${work}/without -G ${GENERATOR}
          -DCMAKE_CXX_COMPILER=${COMPILER} -DCMAKE_DISABLE_FIND_PACKAGE_nlohmann_json=ON
          -DTransformerZoo_DIR=${work}/moved/${LIBDIR}/cmake/TransformerZoo
  RESULT_VARIABLE result OUTPUT_QUIET ERROR_VARIABLE output)
string(REGEX REPLACE "[ \n]+" " " output "${output}")
if(result EQUAL 0 OR NOT output MATCHES "needs nlohmann_json; on Debian and Ubuntu: apt install nlohmann-json3-dev")
  message(FATAL_ERROR "without nlohmann_json, CMake said:\n${output}")
endif()

# A model for the program, from the installed tzoo: it knows one sentence.
string(REPEAT "to be, or not to be, that is the question\n" 100 text)
file(WRITE ${work}/sentence.txt "${text}")
run(${work}/moved/bin/tzoo train --dataset ${work}/sentence.txt --tokenizer char --out_dir ${work}/run --max_iters 150
    --n_layer 2 --n_head 2 --n_embd 32 --block_size 64 --batch_size 4 --learning_rate 1e-2 --eval_iters 1)

function(check_consumer)
  run(${ARGN} ${work}/run/final)
  if(NOT output MATCHES "to be, or not to.*right: 4 of 4")
    message(FATAL_ERROR "the consumer ran, but printed:\n${output}")
  endif()
endfunction()
find_program(consumer consumer PATHS ${work}/consumer ${work}/consumer/${CONFIG} NO_DEFAULT_PATH REQUIRED)
check_consumer(${consumer})

# The same program without CMake, by what pkg-config would read.
file(STRINGS ${work}/moved/${LIBDIR}/pkgconfig/transformer_zoo.pc lines)
string(REPLACE " " "\\ " folder "${work}/moved/${LIBDIR}/pkgconfig")
foreach(line IN LISTS lines)
  if(line MATCHES "^([A-Za-z]+)(=|: )(.*)$")
    set(key ${CMAKE_MATCH_1})
    string(REPLACE "\${pcfiledir}" "${folder}" value "${CMAKE_MATCH_3}")
    string(REPLACE "\${prefix}" "${prefix}" value "${value}")
    string(REPLACE "\${libtorch}" "${libtorch}" value "${value}")
    set(${key} "${value}")
  endif()
endforeach()
separate_arguments(Cflags UNIX_COMMAND "${Cflags}")
separate_arguments(Libs UNIX_COMMAND "${Libs}")
if(SANITIZE)
  list(APPEND Cflags -fsanitize=${SANITIZE})
endif()
run(${COMPILER} ${Cflags} ${CMAKE_CURRENT_LIST_DIR}/consumer/main.cpp ${Libs} -o ${work}/by_pkg_config)
check_consumer(${work}/by_pkg_config)

# The LibTorch of the clone is installed too; one of Torch_DIR stays where it is.
run(ldd ${work}/moved/bin/tzoo)
if(BUNDLED AND NOT output MATCHES "libtorch_cpu.so => ${work}/moved/")
  message(FATAL_ERROR "the installed tzoo has another LibTorch:\n${output}")
endif()

run(${work}/moved/bin/tzoo --help)
if(NOT output MATCHES "tzoo")
  message(FATAL_ERROR "the installed tzoo printed:\n${output}")
endif()

foreach(file man/man1/tzoo.1 bash-completion/completions/tzoo zsh/site-functions/_tzoo fish/vendor_completions.d/tzoo.fish)
  file(READ ${work}/moved/share/${file} text)
  if(NOT text MATCHES "max_iters|max\\\\_iters")
    message(FATAL_ERROR "the installed ${file} does not have the flags of tzoo train")
  endif()
endforeach()

file(REMOVE_RECURSE ${work})
