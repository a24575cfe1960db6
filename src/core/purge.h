// What goes back to the system, by the rules of commitment.h, and who does it: the threads that come by, or keepers.
//
// Memory is given back without the arena lock; meanwhile the run is set aside.
#pragma once

#include <cstddef>
#include <cstdint>

namespace annex {

// With the arena lock held, which each lets go of while it purges:
//
// The delay's rule: a run of `bytes` has been given, or taken and is clean. Leaves it to a keeper; one thread at a
// time.
void give_back_due(uint64_t now_ms, size_t bytes);
// The growth rule, before `bytes` of clean memory are touched by a span, or leaves it to a keeper.
void before_growth(size_t bytes);
// Every dirty run; returns the bytes.
size_t purge_all_locked();

// Without the lock: a thread becomes a keeper, and is one until it leaves. What is due goes back then.
void keeper_comes();
void keeper_leaves();
// For a keeper, a step of 2 MiB at most: what is due, every few milliseconds; and what growth has left to it, whenever
// it can. True where there may be more to do.
void purge_due();
bool purge_after_growth();

// For the purger: gives back what is due, but for a keeper's; how long until there may be more, in milliseconds.
// *small: whether the heap is too small to need it. Negative where it has been so twice in a row, and nobody counts on
// the purger any more: a program that grows again at once still finds it, and need not wait until the old thread has
// gone.
long purge_and_wait_ms(bool* small);

// Around fork: holds the arena lock from a moment on when nothing is half given back; in the child, there is no keeper
// and no purger.
void purge_before_fork();
void purge_after_fork();

}  // namespace annex
