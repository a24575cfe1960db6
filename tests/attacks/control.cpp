// No attacks: correct programs, which every allocator must let come to their end. They show that a verdict of the
// scorecard is not only its own doing.
#include "aftermath.h"
#include "classes.h"

namespace attacks {
namespace {

constexpr char kNothing[] = "nothing, as it does nothing wrong";

Verdict correct_use() {
  before_call();
  give(take(kSize));
  give(nullptr);
  char* block = take(kSize);
  fill(block, 'c', kSize);
  block = static_cast<char*>(resize(block, 40 * kSize));
  const bool kept = holds_only(block, 'c', kSize);
  give(block);
  const Verdict verdict = go_on(kSize);
  return kept ? verdict : exploited("realloc lost what was in a block");
}

// Only what malloc_usable_size says is there is written.
Verdict to_the_end_of_the_room() {
  Blocks blocks(kSize, 'v', 64);
  before_access();
  char* block = take(kSize);
  fill(block, 'c', room(block));
  after_misuse();
  if (!blocks.intact()) return exploited("a block's room reaches into another");
  give(block);
  return go_on(kSize, {.victims = &blocks});
}

Verdict freed_by_another_thread() {
  Worker worker;
  Blocks blocks(kSize, 'v', 64);
  before_call();
  worker.run([&] { blocks.give_all(); });
  return go_on(kSize, {}, &worker);
}

constexpr Attack kAttacks[] = {
    {"control-correct-use", kNothing, "blocks are allocated, resized and freed as they should be", correct_use},
    {"control-whole-room", kNothing, "a block is filled to the last byte that malloc_usable_size grants",
     to_the_end_of_the_room},
    {"control-other-thread", kNothing, "a second thread frees what the first has allocated", freed_by_another_thread},
};

}  // namespace

const AttackClass kControls = {"control", kAttacks};

}  // namespace attacks
