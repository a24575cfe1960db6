// Takes the place of src/remote/steps.h: atomics and a lock that let the scheduler decide who goes next
// before each access. See scheduler.h.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "core/slab_record.h"
#include "unit/remote/scheduler.h"

namespace annex::remote {

// How a failed test's trace names a slab or a field of one; empty for anything else.
std::string name_in_slab(const void* place);
// The inbox's fields have a type each, and so do those of a thread's lease of its heap.
inline const char* field(Slab* const&) { return "the list"; }
inline const char* field(const uint32_t&) { return "the number of complete slabs"; }
inline const char* field(const bool&) { return "the mark of being pooled"; }
inline const char* field(const uint64_t&) { return "the messages"; }
inline const char* field(const SlabState&) { return "a state"; }
inline const char* field(const uint16_t&) { return "a heap's number"; }

// What was there.
inline std::string text(Slab* slab) { return slab == nullptr ? "none" : name_in_slab(slab); }
inline std::string text(SlabState state) {
  return state == SlabState::kFull ? "full" : state == SlabState::kCurrent ? "current" : "partial";
}
inline std::string text(uint64_t word) { return std::to_string(word >> 32) + " << 32 and more"; }
inline std::string text(uint32_t number) { return std::to_string(number); }
inline std::string text(uint16_t number) { return std::to_string(number); }
inline std::string text(bool value) { return value ? "true" : "false"; }

template <class T>
class AtomicRef {
 public:
  explicit AtomicRef(T& value) : value_(value) {}

  T load(std::memory_order) const {
    test::Scheduler::step(&value_, false);
    trace("reads", text(value_));
    return value_;
  }
  void store(T value, std::memory_order) {
    test::Scheduler::step(&value_, true);
    trace("writes", text(value));
    value_ = value;
  }
  T exchange(T value, std::memory_order) {
    test::Scheduler::step(&value_, true);
    trace("exchanges", text(value_) + " for " + text(value));
    const T before = value_;
    value_ = value;
    return before;
  }
  T fetch_add(T more, std::memory_order) {
    test::Scheduler::step(&value_, true);
    trace("adds to", text(value_));
    const T before = value_;
    value_ = before + more;
    return before;
  }
  bool compare_exchange_weak(T& expected, T desired, std::memory_order, std::memory_order) {
    test::Scheduler::step(&value_, true);
    if (value_ == expected) {
      trace("exchanges", text(value_) + " for " + text(desired));
      value_ = desired;
      return true;
    }
    trace("finds", text(value_) + " instead of " + text(expected));
    expected = value_;
    return false;
  }

 private:
  void trace(const char* verb, const std::string& what) const {
    if (!test::Scheduler::tracing()) return;
    const std::string name = name_in_slab(&value_);
    test::Scheduler::trace(verb + (" " + (name.empty() ? field(value_) : name)) + ": " + what);
  }

  T& value_;
};

template <class T>
class Atomic {
 public:
  constexpr explicit Atomic(T value) : value_(value) {}

  T load(std::memory_order order) const { return AtomicRef<T>(value_).load(order); }
  void store(T value, std::memory_order order) { AtomicRef<T>(value_).store(value, order); }
  T exchange(T value, std::memory_order order) { return AtomicRef<T>(value_).exchange(value, order); }
  T fetch_add(T more, std::memory_order order) { return AtomicRef<T>(value_).fetch_add(more, order); }
  bool compare_exchange_weak(T& expected, T desired, std::memory_order success, std::memory_order failure) {
    return AtomicRef<T>(value_).compare_exchange_weak(expected, desired, success, failure);
  }

 private:
  mutable T value_;
};

class Lock {
 public:
  void lock() {
    test::Scheduler::step(this, true, &held_);
    test::Scheduler::trace("takes the lock");
    held_ = true;
  }
  void unlock() {
    test::Scheduler::step(this, true);
    test::Scheduler::trace("lets go of the lock");
    held_ = false;
  }

 private:
  bool held_ = false;
};

class Guard {
 public:
  explicit Guard(Lock& lock) : lock_(lock) { lock_.lock(); }
  ~Guard() { lock_.unlock(); }

 private:
  Lock& lock_;
};

// As many as the test likes: what would be the number of the slab's class says it.
inline uint32_t capacity_of(const Slab* slab) { return slab->size_class; }
char* start_of_slab(const Slab* slab);
Slab* slab_of(const void* address);

}  // namespace annex::remote
