// A block is freed twice. The attacker wants it handed out twice: to the victim, and to the attacker.
#include <atomic>
#include <cstdlib>
#include <new>

#include "aftermath.h"
#include "classes.h"

namespace attacks {
namespace {

constexpr char kGain[] = "one block for two owners";

Verdict again(char* block, std::size_t bytes) {
  before_call();
  give(block);
  return go_on(bytes);
}

Verdict at_once(std::size_t bytes) {
  Blocks others(bytes, 'v', 4);
  char* block = take(bytes);
  give(block);
  return again(block, bytes);
}

Verdict after_others(std::size_t count) {
  Blocks others(kSize, 'v', count);
  char* block = take(kSize);
  give(block);
  others.give_all();
  return again(block, kSize);
}

// Everything of the size has been freed, and was used for something else since.
Verdict late() {
  Blocks others(kSize, 'v', Blocks::kMost);
  char* block = others.let_go(Blocks::kMost / 2);
  give(block);
  others.give_all();
  ordinary_use();
  return again(block, kSize);
}

Verdict after_reuse() {
  char* block = take(kSize);
  give(block);
  Blocks victims(kSize, 'v');
  while (!victims.covers(block, 1) && victims.take()) {
  }
  before_call();
  give(block);
  return go_on(kSize, {.victims = &victims});
}

Verdict after_write(std::size_t offset, std::size_t bytes) {
  Blocks others(kSize, 'v', 4);
  char* block = take(kSize);
  give(block);
  before_access();
  fill(block + offset, 'x', bytes);
  return again(block, kSize);
}

// Where a thread's cache takes seven, the next go elsewhere, and are looked at otherwise.
Verdict after_seven() {
  Blocks seven(kSize, 'v', 7);
  char* block = take(kSize);
  char* between = take(kSize);
  Blocks others(kSize, 'v', 4);
  seven.give_all();
  give(block);
  give(between);
  return again(block, kSize);
}

Verdict second_by_another_thread() {
  Worker worker;
  Blocks others(kSize, 'v', 4);
  char* block = take(kSize);
  give(block);
  before_call();
  worker.run([&] { give(block); });
  return go_on(kSize, {}, &worker);
}

// Another thread's block: it hears of the first free, if at all, after its own.
Verdict first_by_another_thread() {
  Worker owner;
  char* block = nullptr;
  owner.run([&] { block = take(kSize); });
  give(block);
  before_call();
  owner.run([&] { give(block); });
  return go_on(kSize, {}, &owner);
}

Verdict both_by_another_thread() {
  Worker owner;
  char* block = nullptr;
  owner.run([&] { block = take(kSize); });
  give(block);
  before_call();
  give(block);
  return go_on(kSize, {}, &owner);
}

Verdict at_the_same_moment() {
  Worker worker;
  Blocks others(kSize, 'v', 4);
  char* block = take(kSize);
  std::atomic<int> ready = 0;
  before_call();
  auto task = [&] {
    ready = 1;
    while (ready != 2) {
    }
    give(block);
  };
  worker.start(task);
  while (ready != 1) {
  }
  ready = 2;
  give(block);
  worker.wait();
  return go_on(kSize, {}, &worker);
}

Verdict deleted_twice() {
  void* block = opaque(::operator new(kSize));
  ::operator delete(opaque(block));
  before_call();
  ::operator delete(opaque(block));
  return go_on(kSize);
}

Verdict aligned() {
  char* block = static_cast<char*>(opaque(aligned_alloc(4096, 4096)));
  if (block == nullptr) broken("no aligned block");
  give(block);
  return again(block, 4096);
}

constexpr Attack kAttacks[] = {
    {"double-free", kGain, "freed twice in a row", [] { return at_once(kSize); }},
    {"double-free-2000", kGain, "the same with 2,000 bytes", [] { return at_once(2000); }},
    {"double-free-large", kGain, "the same with 1 MiB", [] { return at_once(kLarge); }},
    {"double-free-one-between", kGain, "another block is freed between the two", [] { return after_others(1); }},
    {"double-free-thousand-between", kGain, "1,000 others are freed between the two",
     [] { return after_others(1000); }},
    {"double-free-after-seven", kGain, "seven others are freed before, and one between the two", after_seven},
    {"double-free-late", kGain, "all blocks of the size are freed, and others used, between the two", late},
    {"double-free-after-reuse", kGain, "its address belongs to a victim again when it is freed once more", after_reuse},
    {"double-free-after-write", kGain, "the freed block's second word is overwritten before it is freed again",
     [] { return after_write(sizeof(Word), sizeof(Word)); }},
    {"double-free-after-rewrite", kGain, "the whole freed block is", [] { return after_write(0, kSize); }},
    {"double-free-second-thread", kGain, "the second free is another thread's", second_by_another_thread},
    {"double-free-owner-second", kGain, "another thread's block is freed, then by that thread once more",
     first_by_another_thread},
    {"double-free-remote", kGain, "another thread's block is freed twice, neither time by that thread",
     both_by_another_thread},
    {"double-free-race", kGain, "two threads free the block at the same moment", at_the_same_moment},
    {"double-delete", kGain, "operator delete twice in a row", deleted_twice},
    {"double-free-aligned", kGain, "a page from aligned_alloc, freed twice in a row", aligned},
};

}  // namespace

const AttackClass kDoubleFree = {"double free", kAttacks};

}  // namespace attacks
