// Threads that work in rounds; see misuse_crew.h.
#include "fuzz/misuse_crew.h"

#include <cstdlib>

#include "fuzz/misuse_libc.h"

namespace annex_test {

void* Crew::body(void* self) {
  Member* const member = static_cast<Member*>(self);
  Crew* const crew = member->crew;
  const std::size_t number = static_cast<std::size_t>(member - crew->members_);
  pthread_mutex_lock(&crew->mutex_);
  for (;;) {
    while (member->work == nullptr && !member->leave) pthread_cond_wait(&crew->changed_, &crew->mutex_);
    if (member->leave) break;
    pthread_mutex_unlock(&crew->mutex_);
    member->work(number, member->argument);
    pthread_mutex_lock(&crew->mutex_);
    member->work = nullptr;
    pthread_cond_broadcast(&crew->changed_);
  }
  pthread_mutex_unlock(&crew->mutex_);
  return nullptr;
}

std::size_t Crew::start() {
  std::size_t number = 1;
  while (number < kMost && members_[number].present) ++number;
  if (number == kMost) return 0;
  Member& member = members_[number];
  member = {};
  member.crew = this;
  member.present = true;
  if (pthread_create(&member.thread, nullptr, body, &member) != 0) abort();
  ++size_;
  return number;
}

void Crew::end(std::size_t number) {
  Member& member = members_[number];
  pthread_mutex_lock(&mutex_);
  member.leave = true;
  pthread_cond_broadcast(&changed_);
  pthread_mutex_unlock(&mutex_);
  pthread_join(member.thread, nullptr);
  inherit_from(number);
}

void Crew::forget_threads() {
  for (std::size_t number = 1; number < kMost; ++number) {
    if (present(number)) inherit_from(number);
  }
}

void Crew::inherit_from(std::size_t number) {
  members_[number].present = false;
  --size_;
  Random random(number);
  ledgers_[number].pass_to(&ledgers_[0], &random, ledgers_[number].held());
}

std::size_t Crew::draw(Random* random) const {
  for (;;) {
    const std::size_t number = random->below(kMost);
    if (present(number)) return number;
  }
}

void Crew::hand_out(std::size_t number, Work work, void* argument) {
  pthread_mutex_lock(&mutex_);
  members_[number].argument = argument;
  members_[number].work = work;
  pthread_cond_broadcast(&changed_);
  pthread_mutex_unlock(&mutex_);
}

void Crew::wait_for(std::size_t number) {
  pthread_mutex_lock(&mutex_);
  while (members_[number].work != nullptr) pthread_cond_wait(&changed_, &mutex_);
  pthread_mutex_unlock(&mutex_);
}

void Crew::run(std::size_t number, Work work, void* argument) {
  if (number == 0) return work(0, argument);
  hand_out(number, work, argument);
  wait_for(number);
}

void Crew::run_all(Work work, void* argument) {
  for (std::size_t number = 1; number < kMost; ++number) {
    if (present(number)) hand_out(number, work, argument);
  }
  work(0, argument);
  for (std::size_t number = 1; number < kMost; ++number) {
    if (present(number)) wait_for(number);
  }
}

bool Crew::live(const void* start) const {
  for (const Ledger& ledger : ledgers_) {
    if (ledger.holds(start)) return true;
  }
  return libc_took(start);
}

}  // namespace annex_test
