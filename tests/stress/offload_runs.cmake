annex_test(NAME support-cores SOURCES harness.cpp support_cores.cpp TIMEOUT 240 FLAVOURS offload)

# The offload flavour's other ways of working, each with the same stress tests: the papers' protocols, two support threads
# on however few CPUs, no support thread at all, one CPU (as the shared flavour), and a support thread that hardly ever
# runs (more busy processes than CPUs).
set(some RemoteFree.*:ThreadChurn.*:ThreadExit.*)
foreach(protocol queue handshake)
  add_test(NAME stress.offload-${protocol} COMMAND stress-offload --gtest_filter=${some} --gtest_brief=1)
  set_tests_properties(stress.offload-${protocol} PROPERTIES TIMEOUT 240
    ENVIRONMENT "EXPECT_FLAVOUR=offload;ANNEX_PROTOCOL=${protocol}")
endforeach()
add_test(NAME stress.offload-two-support-cores COMMAND stress-offload --gtest_filter=${some} --gtest_brief=1)
set_tests_properties(stress.offload-two-support-cores PROPERTIES TIMEOUT 240
  ENVIRONMENT "EXPECT_FLAVOUR=offload;ANNEX_SUPPORT_CORES=2")
if(ANNEX_SANITIZE MATCHES "thread")
  return()  # the rest differs in who runs when, not in what is shared
endif()
add_test(NAME stress.offload-no-support-core COMMAND stress-offload --gtest_filter=${some} --gtest_brief=1)
set_tests_properties(stress.offload-no-support-core PROPERTIES TIMEOUT 240
  ENVIRONMENT "EXPECT_FLAVOUR=offload;ANNEX_BACKGROUND=0")
add_test(NAME stress.offload-one-cpu
  COMMAND sh -c "taskset -c $(taskset -cp $$ | sed 's/.*[ ,-]//') $<TARGET_FILE:stress-offload> --gtest_filter='${some}' --gtest_brief=1")
set_tests_properties(stress.offload-one-cpu PROPERTIES TIMEOUT 240 ENVIRONMENT "EXPECT_FLAVOUR=offload")
if(ANNEX_SANITIZE)
  return()  # slow as it is
endif()
add_test(NAME stress.offload-crowded
  COMMAND sh -c "for i in 1 2 3 4; do (while :; do :; done) & hogs=\"$hogs $!\"; done
    $<TARGET_FILE:stress-offload> --gtest_filter='${some}' --gtest_brief=1; status=$?; kill $hogs; exit $status")
set_tests_properties(stress.offload-crowded PROPERTIES TIMEOUT 240 ENVIRONMENT "EXPECT_FLAVOUR=offload")
