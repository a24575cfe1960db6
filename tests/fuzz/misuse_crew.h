// The threads of a trial, each with a ledger. They work in rounds: between two rounds all of them wait, so that anyone
// may look at any ledger, pass blocks from one to another, and know that no address comes into use meanwhile.
//
// Member 0 is the calling thread itself. A member that has ended leaves what it holds to member 0.
#pragma once

#include <pthread.h>

#include <cstddef>
#include <cstdint>

#include "common/random.h"
#include "fuzz/misuse_ledger.h"

namespace annex_test {

class Crew {
 public:
  static constexpr std::size_t kMost = 8;
  using Work = void (*)(std::size_t member, void* argument);

  // Starts a thread; its number.
  std::size_t start();
  void end(std::size_t member);
  // In a forked child, which has member 0 alone.
  void forget_threads();
  bool present(std::size_t member) const { return member == 0 || members_[member].present; }
  std::size_t size() const { return size_; }  // present members, the calling thread among them
  std::size_t draw(Random* random) const;     // a present member

  // Has one member do the work, or all of them at the same time; returns when it is done.
  void run(std::size_t member, Work work, void* argument);
  void run_all(Work work, void* argument);

  Ledger& ledger(std::size_t member) { return ledgers_[member]; }
  bool live(const void* start) const;  // a member's block, or one of libc's, starts there

 private:
  struct Member {
    Crew* crew = nullptr;
    pthread_t thread{};
    bool present = false;
    Work work = nullptr;  // to be done; nullptr: wait
    void* argument = nullptr;
    bool leave = false;
  };
  static void* body(void* self);
  void inherit_from(std::size_t member);
  void hand_out(std::size_t member, Work work, void* argument);
  void wait_for(std::size_t member);

  pthread_mutex_t mutex_ = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t changed_ = PTHREAD_COND_INITIALIZER;
  std::size_t size_ = 1;
  Member members_[kMost];
  Ledger ledgers_[kMost];
};

}  // namespace annex_test
