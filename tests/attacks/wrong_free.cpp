// free of what malloc has not returned: inside blocks, beside them, elsewhere. The attacker wants malloc to hand out
// what was freed: memory that is in use, or none of the heap's. Where memory around the pointer can be written, it is
// filled with what may pass for headers.
#include <sys/mman.h>

#include "aftermath.h"
#include "classes.h"

namespace attacks {
namespace {

constexpr char kInsideGain[] = "malloc returns the inside of a block";
constexpr char kPlaceGain[] = "malloc returns memory that is not the heap's";
constexpr Word kHeader = 0x51;  // of a block of kSize

Verdict inside(std::size_t bytes, std::size_t offset) {
  Blocks victims(bytes, 'v', 4);
  char* block = victims[2];
  fill_words(block, kHeader, bytes < 8192 ? bytes : 8192);
  before_call();
  give(block + offset);
  const Verdict verdict = go_on(kSize, {.victims = &victims});
  return verdict.kind == Verdict::Kind::kSurvived ? go_on(bytes, {.victims = &victims}) : verdict;
}

Verdict inside_freed() {
  Blocks victims(kLarge, 'v', 4);
  char* block = victims.let_go(2);
  give(block);
  before_call();
  give(block + 65536);
  return go_on(kSize, {.victims = &victims});
}

Verdict elsewhere(char* place, std::size_t bytes, std::size_t offset) {
  fill_words(place, kHeader, bytes);
  before_call();
  give(place + offset);
  return go_on(kSize, {.place = place, .bytes = bytes});
}

Verdict on_the_stack() {
  alignas(64) char place[4096];
  return elsewhere(place, sizeof place, 1024);
}

Verdict in_static_memory() {
  alignas(64) static char place[4096];
  return elsewhere(place, sizeof place, 1024);
}

Verdict in_a_mapping(std::size_t offset) {
  void* place = mmap(nullptr, kLarge, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (place == MAP_FAILED) broken("no mapping");
  return elsewhere(static_cast<char*>(place), kLarge, offset);
}

Verdict of(char* place) {
  before_call();
  give(place);
  return go_on(kSize, {.place = place, .bytes = 1});
}

Verdict behind_a_block() {
  Blocks victims(kSize, 'v', 32);
  before_call();
  give(victims[16] + room(victims[16]));
  return go_on(kSize, {.victims = &victims});
}

// Of the same heap, but far from anything it has handed out.
Verdict far_in_the_heap() {
  Blocks victims(kSize, 'v', 32);
  return of(pointer((address(victims.last()) & ~Word{0xFFFF}) + (16 << 20) + 16 * kSize));
}

constexpr Attack kAttacks[] = {
    {"free-inside", kInsideGain, "64 bytes into a block of 1,000", [] { return inside(1000, 64); }},
    {"free-inside-8", kInsideGain, "8 bytes into a block", [] { return inside(kSize, 8); }},
    {"free-inside-odd", kInsideGain, "1 byte into a block", [] { return inside(kSize, 1); }},
    {"free-inside-large", kInsideGain, "64 KiB into 1 MiB", [] { return inside(kLarge, 65536); }},
    {"free-inside-large-16", kInsideGain, "16 bytes into 1 MiB", [] { return inside(kLarge, 16); }},
    {"free-inside-freed-large", kInsideGain, "64 KiB into 1 MiB that is freed", inside_freed},
    {"free-behind", "malloc returns a block that is in use", "the address behind a block", behind_a_block},
    {"free-stack", kPlaceGain, "an array on the stack", on_the_stack},
    {"free-static", kPlaceGain, "a static array", in_static_memory},
    {"free-mapping", kPlaceGain, "memory from mmap", [] { return in_a_mapping(8192); }},
    {"free-mapping-inside", kPlaceGain, "the same, 64 bytes into a page", [] { return in_a_mapping(8192 + 64); }},
    {"free-code", kPlaceGain, "a function", [] { return of(pointer(address(reinterpret_cast<void*>(&give)))); }},
    {"free-small-number", kPlaceGain, "the number 16", [] { return of(pointer(16)); }},
    {"free-text", kPlaceGain, "eight letters in the place of a pointer",
     [] { return of(pointer(0x4141414141414140)); }},
    {"free-far", kPlaceGain, "16 MiB behind what the heap has handed out", far_in_the_heap},
};

}  // namespace

const AttackClass kWrongFree = {"wrong free", kAttacks};

}  // namespace attacks
