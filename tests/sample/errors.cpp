// What a program does wrong with a sampled block is found where it does it, and reported: in one line, then call
// stacks.
#include <gtest/gtest.h>
#include <pthread.h>
#include <unistd.h>

#include <csignal>
#include <string>

#include "annex/annex.h"
#include "common/opaque.h"
#include "sample/sampled.h"

using namespace annex_test;

namespace {

constexpr std::size_t kBytes = 40;

void reached() { SCENARIO_CHECK(write(STDOUT_FILENO, "reached\n", 8) == 8); }

char read(const char* place) { return *static_cast<const volatile char*>(place); }
void write_to(char* place) { *static_cast<volatile char*>(place) = 1; }

// Not every machine says which it was.
#ifdef __x86_64__
constexpr const char *kReadOf = "a read of a freed block:", *kWriteTo = "a write to a freed block:";
constexpr const char *kReadOutside = "a read outside of a block:", *kWriteOutside = "a write outside of a block:";
#else
constexpr const char *kReadOf = "a read or write of a freed block:", *kWriteTo = kReadOf;
constexpr const char *kReadOutside = "a read or write outside of a block:", *kWriteOutside = kReadOutside;
#endif

// The first line, and all of them.
void expect_report(const std::string& scenario, const std::string& line, bool freed) {
  const Outcome outcome = run_with_samples(scenario);
  EXPECT_EQ(outcome.out, "reached\n") << describe(outcome);
  EXPECT_EQ(outcome.signal, SIGABRT) << describe(outcome);
  const std::string first = outcome.err.substr(0, outcome.err.find('\n'));
  EXPECT_EQ(first.rfind("annex: " + line, 0), 0u) << first;
  EXPECT_NE(first.find(" a sampled block of 40 bytes)"), std::string::npos) << first;
  EXPECT_NE(outcome.err.find("\n  here:\n"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("\n  allocated by thread "), std::string::npos) << outcome.err;
  EXPECT_EQ(outcome.err.find("\n  freed by thread ") != std::string::npos, freed) << outcome.err;
}
void expect_in_line(const std::string& scenario, const std::string& words) {
  const Outcome outcome = run_with_samples(scenario);
  EXPECT_NE(outcome.err.substr(0, outcome.err.find('\n')).find(words), std::string::npos) << outcome.err;
}

}  // namespace

ANNEX_SCENARIO(sampled_read_behind) {
  const char* block = take_sampled(kBytes, Side::kEnd);
  reached();
  return read(block + 48);
}
ANNEX_SCENARIO(sampled_write_behind) {
  char* block = take_sampled(kBytes, Side::kEnd);
  reached();
  write_to(block + 50);
  return 0;
}
TEST(Errors, BehindTheBlock) {
  expect_report("sampled_read_behind", kReadOutside, false);
  expect_in_line("sampled_read_behind", "(8 bytes behind the end of ");
  expect_report("sampled_write_behind", kWriteOutside, false);
  expect_in_line("sampled_write_behind", "(10 bytes behind the end of ");
}

ANNEX_SCENARIO(sampled_write_before) {
  char* block = take_sampled(kBytes, Side::kStart);
  reached();
  write_to(block - 3);
  return 0;
}
TEST(Errors, BeforeTheBlock) {
  expect_report("sampled_write_before", kWriteOutside, false);
  expect_in_line("sampled_write_before", "(3 bytes before ");
}

// What is too near for the page's end to tell.
ANNEX_SCENARIO(sampled_write_just_behind) {
  char* block = take_sampled(kBytes);
  block[kBytes] = 0;
  reached();
  annex_free(block);
  return 0;
}
TEST(Errors, JustBehindTheBlock) {
  expect_report("sampled_write_just_behind", "a block written to behind its end:", false);
}

ANNEX_SCENARIO(sampled_read_after) {
  char* block = take_sampled(kBytes);
  annex_free(block);
  reached();
  return read(block + 2);
}
ANNEX_SCENARIO(sampled_write_after) {
  char* block = take_sampled(kBytes);
  annex_free(block);
  reached();
  write_to(block);
  return 0;
}
TEST(Errors, AfterItWasFreed) {
  expect_report("sampled_read_after", kReadOf, true);
  expect_in_line("sampled_read_after", "(2 bytes into ");
  expect_report("sampled_write_after", kWriteTo, true);
}

ANNEX_SCENARIO(sampled_freed_again) {
  char* block = take_sampled(kBytes);
  annex_free(block);
  reached();
  annex_free(opaque(block));
  return 0;
}
ANNEX_SCENARIO(sampled_freed_again_by_a_thread) {
  char* block = take_sampled(kBytes);
  annex_free(block);
  reached();
  const auto release = [](void* freed) -> void* {
    annex_free(freed);
    return nullptr;
  };
  pthread_t thread;
  SCENARIO_CHECK(pthread_create(&thread, nullptr, release, block) == 0);
  pthread_join(thread, nullptr);
  return 0;
}
TEST(Errors, FreedTwice) {
  expect_report("sampled_freed_again", "a block freed twice (or never allocated):", true);
  expect_report("sampled_freed_again_by_a_thread", "a block freed twice (or never allocated):", true);
}

ANNEX_SCENARIO(sampled_freed_within) {
  char* block = take_sampled(kBytes);
  reached();
  annex_free(block + 16);
  return 0;
}
ANNEX_SCENARIO(sampled_resized_within) {
  char* block = take_sampled(kBytes);
  reached();
  return annex_realloc(block + 16, 100) != nullptr;
}
ANNEX_SCENARIO(sampled_measured_after) {
  char* block = take_sampled(kBytes);
  annex_free(block);
  reached();
  return annex_usable_size(block) != 0;
}
TEST(Errors, WrongAddress) {
  expect_report("sampled_freed_within", "a pointer into a block (or misaligned):", false);
  expect_report("sampled_resized_within", "a pointer into a block (or misaligned):", false);
  expect_report("sampled_measured_after", "a block freed twice (or never allocated):", true);
}
