# Targets of this project: one library a folder, one test binary a folder of tests.

add_library(cipherd_options INTERFACE)
target_include_directories(cipherd_options INTERFACE ${PROJECT_SOURCE_DIR})
target_compile_options(cipherd_options INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra;-Wno-unused-parameter;-Wno-missing-field-initializers>)
if(CIPHERD_SANITIZE)
  target_compile_options(cipherd_options INTERFACE
    -fsanitize=${CIPHERD_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(cipherd_options INTERFACE -fsanitize=${CIPHERD_SANITIZE})
endif()

# cipherd_library(NAME SOURCES... DEPS ...): a static library, or an interface one where it has no
# sources. DEPS are public.
function(cipherd_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  if(ARG_SOURCES)
    add_library(${name} STATIC ${ARG_SOURCES})
    target_link_libraries(${name} PUBLIC cipherd_options ${ARG_DEPS})
  else()
    add_library(${name} INTERFACE)
    target_link_libraries(${name} INTERFACE cipherd_options ${ARG_DEPS})
  endif()
endfunction()

# Builds the tests that run under ThreadSanitizer, those labelled "threaded".
add_custom_target(threaded_tests)
# Builds the tests of what reads others' bytes, those labelled "inputs".
add_custom_target(input_tests)

# cipherd_test(NAME [THREADED] [SHARDS N] SOURCES... DEPS ...): a GoogleTest binary, registered with CTest under NAME.
# Discovery happens when the tests run, so that devices are enumerated on the machine that runs them.
# THREADED, or a folder of cipherd_threaded_folders, makes it one that runs under ThreadSanitizer too.
# SHARDS N registers N tests, NAME_1 to NAME_N, each of every Nth case: for what takes longest, so that
# others do not wait for one process while a processor has nothing to do.
set(cipherd_threaded_folders base runtime conformance kernels value execution engine)
set(cipherd_input_folders value codec grpc_status inference client server regressions)
function(cipherd_test name)
  cmake_parse_arguments(ARG "THREADED" "SHARDS;TIMEOUT" "SOURCES;DEPS" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 600)
  endif()
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE cipherd_options cipherd_testing ${ARG_DEPS}
    GTest::gmock GTest::gtest GTest::gtest_main)
  if(CIPHERD_SANITIZE STREQUAL "thread")
    target_sources(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests/testing/tsan_abseil.cc)
    target_link_libraries(${name} PRIVATE absl::synchronization ${CMAKE_DL_LIBS})
  endif()
  set(tests ${name})
  if(ARG_SHARDS)
    list(TRANSFORM tests APPEND _1)
    foreach(shard RANGE 2 ${ARG_SHARDS})
      list(APPEND tests ${name}_${shard})
    endforeach()
  endif()
  cmake_path(GET CMAKE_CURRENT_SOURCE_DIR FILENAME folder)
  set(labels "")
  if(ARG_THREADED OR folder IN_LIST cipherd_threaded_folders)
    list(APPEND labels threaded)
    add_dependencies(threaded_tests ${name})
  endif()
  if(folder IN_LIST cipherd_input_folders)
    list(APPEND labels inputs)
    add_dependencies(input_tests ${name})
  endif()
  set(shard 0)
  foreach(test IN LISTS tests)
    add_test(NAME ${test} COMMAND ${name})
    set_tests_properties(${test} PROPERTIES TIMEOUT ${ARG_TIMEOUT} LABELS "${labels}")
    if(ARG_SHARDS)
      set_tests_properties(${test} PROPERTIES
        ENVIRONMENT "GTEST_TOTAL_SHARDS=${ARG_SHARDS};GTEST_SHARD_INDEX=${shard}")
      math(EXPR shard "${shard} + 1")
    endif()
  endforeach()
endfunction()
