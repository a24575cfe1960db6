// What tools/server_day.c and tools/bursts.c have in common: a histogram of times, and a clock.
#pragma once

#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

enum {
  kSteps = 64,  // of a histogram between a time and twice it
  kTimes = 64 * kSteps,
};

static int64_t now_ns(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

static void sleep_until(int64_t when_ns) {
  const struct timespec time = {.tv_sec = when_ns / 1000000000, .tv_nsec = when_ns % 1000000000};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL) == EINTR) continue;
}

static void note_time(atomic_uint* times, int64_t ns) {
  const uint64_t value = ns < kSteps ? kSteps : (uint64_t)ns;
  const int power = 63 - __builtin_clzll(value);
  const uint64_t step = (value >> (power - 6)) - kSteps;
  atomic_fetch_add_explicit(&times[(uint64_t)(power - 6) * kSteps + step], 1, memory_order_relaxed);
}

// The time in microseconds within which that share of all was done.
static double percentile_us(atomic_uint* times, double share) {
  double total = 0, seen = 0;
  for (int i = 0; i < kTimes; ++i) total += times[i];
  for (int i = 0; i < kTimes; ++i) {
    seen += times[i];
    if (times[i] > 0 && seen >= share * total) {
      return (double)((uint64_t)(kSteps + i % kSteps + 1) << (i / kSteps)) / 1e3;
    }
  }
  return 0;
}

static void say_times(const char* what, atomic_uint* times) {
  static const struct {
    const char* name;
    double share;
  } kShares[] = {{"p50", 0.5}, {"p99", 0.99}, {"p9999", 0.9999}};
  for (int i = 0; i < 3; ++i) printf("%s_%s_us %.1f\n", what, kShares[i].name, percentile_us(times, kShares[i].share));
}
