// An error ends the process, whatever the thread that makes it is in the middle of.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <malloc.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "common/expect_success.h"
#include "common/scenario.h"
#include "errors/double_free.h"

using namespace annex_test;

namespace {

void say(const char* words) { SCENARIO_CHECK(write(STDOUT_FILENO, words, strlen(words)) > 0); }

// In a thread that has been cancelled and not yet noticed.
void in_a_cancelled_thread(void (*act)()) {
  static void (*what)();
  what = act;
  pthread_t thread;
  SCENARIO_CHECK(pthread_create(
                     &thread, nullptr,
                     [](void*) -> void* {
                       SCENARIO_CHECK(pthread_cancel(pthread_self()) == 0);
                       what();
                       say("went on in the thread\n");
                       return nullptr;
                     },
                     nullptr) == 0);
  pthread_join(thread, nullptr);
}

void expect_end(const std::string& scenario, const std::string& out, const std::string& argument = "",
                const char* backtrace = "0") {
  Launch launch;
  launch.scenario = scenario;
  launch.argument = argument;
  launch.environment = {{"ANNEX_BACKTRACE", backtrace}};
  const Outcome outcome = run_scenario(launch);
  EXPECT_EQ(outcome.signal, SIGABRT) << describe(outcome);
  EXPECT_EQ(outcome.out, out) << describe(outcome);
  EXPECT_EQ(outcome.err.rfind("annex: ", 0), 0u) << describe(outcome);
}

}  // namespace

// --- cancellation ---------------------------------------------------------------------------------------------------

ANNEX_SCENARIO(error_of_a_cancelled_thread) {
  in_a_cancelled_thread([] { free_twice(strtoull(scenario_argument(), nullptr, 10)); });
  say("went on\n");
  return 0;
}
TEST(Ending, InACancelledThread) {
  for (const char* bytes : {"40", "3000", "300000"}) {
    expect_end("error_of_a_cancelled_thread", "", bytes);
    expect_end("error_of_a_cancelled_thread", "", bytes, "1");
  }
}

ANNEX_SCENARIO(handler_that_is_cancelled) {
  signal(SIGABRT, [](int) {
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, nullptr);
    pthread_cancel(pthread_self());
    say("handler\n");
    pthread_testcancel();
  });
  pthread_t thread;
  SCENARIO_CHECK(pthread_create(
                     &thread, nullptr,
                     [](void*) -> void* {
                       free_twice();
                       return nullptr;
                     },
                     nullptr) == 0);
  pthread_join(thread, nullptr);
  say("went on\n");
  return 0;
}
TEST(Ending, AHandlerThatIsCancelled) { expect_end("handler_that_is_cancelled", "handler\n"); }

ANNEX_SCENARIO(statistics_in_a_cancelled_thread) {
  in_a_cancelled_thread([] {
    malloc_stats();
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, nullptr);
    say("not cancelled in malloc_stats\n");
    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, nullptr);
  });
  return 0;
}
TEST(Ending, StatisticsCancelNoThread) {
  const Outcome outcome = expect_success("statistics_in_a_cancelled_thread");
  EXPECT_EQ(outcome.out, "not cancelled in malloc_stats\n") << describe(outcome);
}

// --- SIGABRT --------------------------------------------------------------------------------------------------------

ANNEX_SCENARIO(signals_all_blocked) {
  signal(SIGABRT, [](int) { say("handler\n"); });
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, nullptr);
  free_twice();
  say("went on\n");
  return 0;
}
ANNEX_SCENARIO(signal_ignored) {
  signal(SIGABRT, SIG_IGN);
  free_twice();
  say("went on\n");
  return 0;
}
ANNEX_SCENARIO(handler_that_errs) {
  signal(SIGABRT, [](int) {
    say("handler\n");
    free_twice();
    say("went on in the handler\n");
  });
  free_twice();
  say("went on\n");
  return 0;
}
TEST(Ending, WithSignalsBlocked) { expect_end("signals_all_blocked", "handler\n"); }
TEST(Ending, WithTheSignalIgnored) { expect_end("signal_ignored", ""); }
TEST(Ending, InAHandlerThatErrs) { expect_end("handler_that_errs", "handler\n"); }

// A handler may leave, as out of abort(); but not again.
ANNEX_SCENARIO(handler_that_leaves) {
  static sigjmp_buf back;
  signal(SIGABRT, [](int) {
    say("handler\n");
    siglongjmp(back, 1);
  });
  sigsetjmp(back, 1);
  free_twice();
  say("went on\n");
  return 0;
}
TEST(Ending, AHandlerThatLeaves) { expect_end("handler_that_leaves", "handler\n"); }

// --- the call stack -------------------------------------------------------------------------------------------------

// Its functions have names under a lock of the loader's: here that of a thread which opens a file that doesn't open.
ANNEX_SCENARIO(loader_that_waits) {
  char path[] = "/tmp/annex-ending-XXXXXX";
  SCENARIO_CHECK(mkdtemp(path) != nullptr);
  static char file[sizeof path + 2];
  strcat(strcpy(file, path), "/p");
  SCENARIO_CHECK(mkfifo(file, 0600) == 0);
  pthread_t thread;
  SCENARIO_CHECK(pthread_create(
                     &thread, nullptr, [](void*) -> void* { return dlopen(file, RTLD_NOW); }, nullptr) == 0);
  timespec time{0, 300'000'000};
  nanosleep(&time, nullptr);
  unlink(file);
  rmdir(path);
  free_twice();
  return 0;
}
TEST(Ending, WhileTheLoaderWaits) {
  Launch launch;
  launch.scenario = "loader_that_waits";
  launch.environment = {{"ANNEX_BACKTRACE", "1"}};
  const Outcome outcome = run_scenario(launch);
  EXPECT_EQ(outcome.signal, SIGKILL) << describe(outcome);
  EXPECT_EQ(outcome.err.rfind("annex: ", 0), 0u) << describe(outcome);
}

// --- what is said ---------------------------------------------------------------------------------------------------

ANNEX_SCENARIO(errs) {
  fprintf(stdout, "[%d]", getpid());
  fflush(stdout);
  free_twice();
  return 0;
}
TEST(Ending, TheLineSaysWhoAndWhatNext) {
  Launch launch;
  launch.scenario = "errs";
  const Outcome outcome = run_scenario(launch);
  EXPECT_NE(outcome.err.find(outcome.out), std::string::npos) << describe(outcome);
  EXPECT_NE(outcome.err.find("ANNEX_BACKTRACE=1"), std::string::npos) << describe(outcome);
  const bool hardened = strcmp(getenv("EXPECT_FLAVOUR"), "hardened") == 0;
  EXPECT_EQ(outcome.err.find("--mode hardened") == std::string::npos, hardened) << describe(outcome);
  EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << describe(outcome);
}
