# Builds the fuzz target of one flavour with clang and sanitizers in a directory of its own, and runs it for a while.
#   cmake -DCLANGXX=... -DSOURCE=... -DGENERATOR=... -DBUILD=... -DFLAVOUR=... -DSECONDS=... -DSEEDS=... -P run_fuzzer.cmake
if(DEFINED ENV{ANNEX_REQUIRE_ALL})
  set(refuse FATAL_ERROR "fuzz: ")
else()
  set(refuse STATUS "fuzz: skipped, ")
endif()
if(NOT CLANGXX)
  message(${refuse} "there is no clang++ here")
  return()
endif()

# clang may be there without its run-time library.
set(probe ${BUILD}/probe)
file(MAKE_DIRECTORY ${probe})
file(WRITE ${probe}/probe.cpp
  "extern \"C\" int LLVMFuzzerTestOneInput(const unsigned char*, unsigned long) { return 0; }\n")
execute_process(COMMAND ${CLANGXX} -fsanitize=fuzzer,address,undefined probe.cpp -o probe
  WORKING_DIRECTORY ${probe} RESULT_VARIABLE failed OUTPUT_QUIET ERROR_QUIET)
if(failed)
  message(${refuse} "${CLANGXX} cannot link a libFuzzer target (libclang-rt-dev is missing?)")
  return()
endif()

string(REPLACE "++" "" clang ${CLANGXX})
execute_process(COMMAND ${CMAKE_COMMAND} -S ${SOURCE} -B ${BUILD} -G ${GENERATOR} -DCMAKE_BUILD_TYPE=Debug
  -DCMAKE_CXX_COMPILER=${CLANGXX} -DCMAKE_C_COMPILER=${clang} -DANNEX_SANITIZE=address,undefined
  "-DCMAKE_CXX_FLAGS=-O1 -fsanitize=fuzzer-no-link"
  -DANNEX_WORKLOADS=OFF RESULT_VARIABLE failed)
if(failed)
  message(FATAL_ERROR "the build with clang cannot be configured")
endif()
execute_process(COMMAND ${CMAKE_COMMAND} --build ${BUILD} --target fuzz-${FLAVOUR} RESULT_VARIABLE failed)
if(failed)
  message(FATAL_ERROR "the build with clang failed")
endif()

# What earlier runs in this build directory found is kept as the corpus; the committed inputs are the seeds.
set(corpus ${BUILD}/corpus-${FLAVOUR})
file(MAKE_DIRECTORY ${corpus})
execute_process(COMMAND ${BUILD}/tests/fuzz-${FLAVOUR} -max_total_time=${SECONDS} -max_len=1024 -timeout=30
  -rss_limit_mb=4096 -print_final_stats=1 -verbosity=0 -artifact_prefix=${BUILD}/ ${corpus} ${SEEDS}
  RESULT_VARIABLE failed ERROR_VARIABLE log)
message("${log}")
if(failed)
  message(FATAL_ERROR "an input broke the model: its path is above; once fixed, keep it in ${SEEDS}")
endif()
# A run that tried nothing proves nothing.
if(NOT log MATCHES "number_of_executed_units: ([0-9]+)" OR CMAKE_MATCH_1 LESS 100)
  message(FATAL_ERROR "the fuzzer hardly ran")
endif()
