# Installs the build tree BUILD to a temporary prefix; builds and runs the programs in consumer/ against it, with
# find_package and with the pkg-config file; runs the installed tzoo.
cmake_minimum_required(VERSION 3.25)  # else a script has the policies of CMake 2
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

run(${CMAKE_COMMAND} -S ${CMAKE_CURRENT_LIST_DIR}/consumer -B ${work}/consumer -G ${GENERATOR} -DCMAKE_BUILD_TYPE=
    -DCMAKE_CXX_COMPILER=${COMPILER} -DCMAKE_CXX_COMPILER_LAUNCHER=${LAUNCHER}
    -DTransformerZoo_DIR=${work}/moved/${LIBDIR}/cmake/TransformerZoo ${flags})
# In the short tier one program of each library.
set(targets generate search classify fine_tune own_module)
if(DEFINED ENV{ZOO_TEST_SHORT})
  set(targets generate own_module)
endif()
run(${CMAKE_COMMAND} --build ${work}/consumer --config ${CONFIG} --target ${targets})

# Headers without an example of their use are installed only if others include them.
foreach(header models/tasks/classify models/layers/attention/attention models/ops/linear training/trainer)
  if(NOT EXISTS ${work}/moved/include/zoo/${header}.h)
    message(FATAL_ERROR "${header}.h is not installed")
  endif()
endforeach()
foreach(header models/kernels/tile tokenizer/jinja/syntax models/layers/pch)
  if(EXISTS ${work}/moved/include/zoo/${header}.h)
    message(FATAL_ERROR "${header}.h is installed")
  endif()
endforeach()

# The same headers in another project's build.
if(search IN_LIST targets)
  run(${CMAKE_COMMAND} -S ${CMAKE_CURRENT_LIST_DIR}/inside -B ${work}/inside -G ${GENERATOR} -DCMAKE_CXX_COMPILER=${COMPILER}
      -DCMAKE_CXX_COMPILER_LAUNCHER=${LAUNCHER} -DCMAKE_BUILD_TYPE=)
  run(${CMAKE_COMMAND} --build ${work}/inside --config ${CONFIG} --target inside)
endif()

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

# Models for the programs, from the installed tzoo. One knows a sentence.
string(REPEAT "to be, or not to be, that is the question\n" 100 text)
file(WRITE ${work}/sentence.txt "${text}")
run(${work}/moved/bin/tzoo train --dataset ${work}/sentence.txt --tokenizer char --out_dir ${work}/run --max_iters 150
    --n_layer 2 --n_head 2 --n_embd 32 --block_size 64 --batch_size 4 --learning_rate 1e-2 --eval_iters 1)

# A classifier of reviews.
string(REPEAT "the film was fine\tpos\nthe book was dull\tneg\nthe film was great\tpos\nthe book was bad\tneg\n" 10 table)
file(WRITE ${work}/reviews.tsv "text\tlabel\n${table}")
run(${work}/moved/bin/tzoo train --task classification --dataset ${work}/reviews.tsv --model_type bert --tokenizer wordpiece
    --vocab_size 60 --out_dir ${work}/reviews --max_iters 1 --n_layer 1 --n_head 2 --n_embd 32 --block_size 16 --batch_size 4
    --eval_iters 1)
file(WRITE ${work}/passages.txt "to be, or\nthat is the question\n")
file(WRITE ${work}/questions.txt "that is the\n")
file(WRITE ${work}/lines.txt "the book was great\nthe film was bad\n")

# check(EXPECTED INPUT PROGRAM ...) runs a program with a file as standard input; its output must match EXPECTED.
function(check expected input)
  execute_process(COMMAND ${ARGN} INPUT_FILE ${input} RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT result EQUAL 0 OR NOT output MATCHES "${expected}")
    list(JOIN ARGN " " command)
    message(FATAL_ERROR "${command}: ${result}, and printed:\n${output}")
  endif()
endfunction()
find_program(generate generate PATHS ${work}/consumer ${work}/consumer/${CONFIG} NO_DEFAULT_PATH REQUIRED)
get_filename_component(programs ${generate} DIRECTORY)
check("^to be, or not to" /dev/null ${programs}/generate ${work}/run/final "to be, o")
if(search IN_LIST targets)
  check("^that is the -> that is the question" ${work}/questions.txt ${programs}/search ${work}/run/final ${work}/passages.txt)
  check("^loss 0\\.[0-2]" /dev/null ${programs}/fine_tune ${work}/reviews/final ${work}/tuned)
  check("^pos\t0\\.[5-9].*great\nneg\t0\\.[5-9].*bad" ${work}/lines.txt ${programs}/classify ${work}/tuned/final)
endif()
check("right: 4 of 4" /dev/null ${programs}/own_module ${work}/run/final ${work}/module)
if(NOT EXISTS ${work}/module/final/model.safetensors)
  message(FATAL_ERROR "own_module left no final/model.safetensors")
endif()

# One of them without CMake, by what pkg-config would read.
if(search IN_LIST targets)
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
  run(${COMPILER} ${Cflags} ${CMAKE_CURRENT_LIST_DIR}/consumer/generate.cpp ${Libs} -o ${work}/by_pkg_config)
  check("^to be, or not to" /dev/null ${work}/by_pkg_config ${work}/run/final "to be, o")
endif()

# The LibTorch of the clone is installed too; one of Torch_DIR stays where it is.
run(ldd ${work}/moved/bin/tzoo)
if(BUNDLED AND NOT output MATCHES "libtorch_cpu.so => ${work}/moved/")
  message(FATAL_ERROR "the installed tzoo has another LibTorch:\n${output}")
endif()

run(${work}/moved/bin/tzoo --help)
if(NOT output MATCHES "tzoo")
  message(FATAL_ERROR "the installed tzoo printed:\n${output}")
endif()

foreach(file man/man1/tzoo.1 bash-completion/completions/tzoo zsh/site-functions/_tzoo)
  file(READ ${work}/moved/share/${file} text)
  if(NOT text MATCHES "max_iters|max\\\\_iters")
    message(FATAL_ERROR "the installed ${file} does not have the flags of tzoo train")
  endif()
endforeach()

file(REMOVE_RECURSE ${work})
