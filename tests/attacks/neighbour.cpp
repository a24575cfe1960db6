// Where blocks lie to each other. No mistake is made here: these are the odds of every overflow. The attacker wants to
// lie directly before a victim's block, or to know where one will be.
#include "aftermath.h"
#include "classes.h"

namespace attacks {
namespace {

constexpr char kBesideGain[] = "a victim's block directly behind the attacker's";
constexpr char kPlaceGain[] = "where the next block will be";
constexpr std::size_t kNear = 32;  // bytes between two blocks: a header, padding

bool directly_behind(char* first, const char* second) {
  const Word gap = address(second) - (address(first) + room(first));
  return gap <= kNear;
}

Verdict judge(bool hit) {
  after_misuse();
  return hit ? exploited("the victim's block is where the attacker wants it") : survived("it is elsewhere");
}

Verdict next(std::size_t bytes) {
  char* mine = take(bytes);
  const char* victim = take(bytes);
  before_access();
  return judge(directly_behind(mine, victim));
}

Verdict predicted() {
  const char* first = take(kSize);
  const char* second = take(kSize);
  before_access();
  return judge(take(kSize) == second + (second - first));
}

Verdict sprayed(std::size_t victim_bytes) {
  Blocks mine(kSize, 'm', 512);
  const char* victim = take(victim_bytes);
  mine.take(512);
  before_access();
  bool hit = false;
  for (std::size_t i = 0; i < mine.size(); ++i) hit = hit || directly_behind(mine[i], victim);
  return judge(hit);
}

// The attacker frees one of many blocks of its own, and the victim's next block goes there.
Verdict hole() {
  Blocks mine(kSize, 'm', 512);
  char* freed = mine.let_go(256);
  give(freed);
  before_access();
  return judge(take(kSize) == freed);
}

// As above with every other block freed: does the victim's lie between two of the attacker's?
Verdict holes() {
  Blocks mine(kSize, 'm', 512);
  for (std::size_t i = 1; i < mine.size(); i += 2) mine.give(i);
  const char* victim = take(kSize);
  before_access();
  bool hit = false;
  for (std::size_t i = 0; i < mine.size(); i += 2) hit = hit || directly_behind(mine[i], victim);
  return judge(hit);
}

constexpr Attack kAttacks[] = {
    {"neighbour-next", kBesideGain, "the next block lies directly behind", [] { return next(kSize); }},
    {"neighbour-next-large", kBesideGain, "the same with 1 MiB", [] { return next(kLarge); }},
    {"neighbour-predicted", kPlaceGain, "the third block lies behind the second as that behind the first", predicted},
    {"neighbour-sprayed", kBesideGain, "the victim's lies behind one of 1,024, half of them allocated before",
     [] { return sprayed(kSize); }},
    {"neighbour-other-size", kBesideGain, "the same where the victim's block has 512 bytes",
     [] { return sprayed(512); }},
    {"neighbour-hole", kBesideGain, "the victim's next block is the one of 512 that the attacker has freed", hole},
    {"neighbour-holes", kBesideGain, "every other of 512 is freed, and the victim's next lies behind one that is not",
     holes},
};

}  // namespace

const AttackClass kNeighbour = {"neighbour", kAttacks};

}  // namespace attacks
