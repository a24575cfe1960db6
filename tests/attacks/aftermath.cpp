// See aftermath.h.
#include "aftermath.h"

#include "ledger.h"

namespace attacks {
namespace {

constexpr std::size_t kSizes[] = {16, 48, 64, 72, 80, 200, 1000, 5000, 40000};
constexpr std::size_t kSmall = 1000;
constexpr char kTwoAreOne[] = "two live blocks are one";
constexpr char kPlace[] = "malloc returned a place that is not the heap's";

// Enough to use up what lies ready of a size anywhere: 128 KiB of small blocks.
std::size_t share(std::size_t bytes) { return bytes <= kSmall ? Blocks::kMost / 2 : 16; }

// Takes blocks, each looked at before it is filled, until malloc has none or one is what it must not be: says what.
const char* take_apart(Blocks* blocks, std::size_t count, const Aim& aim, Ledger* live) {
  const std::size_t bytes = blocks->bytes();
  for (std::size_t i = 0; i < count; ++i) {
    char* block = take(bytes);
    if (block == nullptr) return nullptr;
    if (aim.place != nullptr && share_bytes(block, bytes, aim.place, aim.bytes)) return kPlace;
    if (aim.victims != nullptr && aim.victims->covers(block, bytes)) return kTwoAreOne;
    if (!live->add(block, bytes)) return kTwoAreOne;
    blocks->add(block);
  }
  return nullptr;
}

// Each of the two threads frees what the other has allocated, so that what waits to be handed over is.
const char* exchange(Worker* other, const Aim& aim) {
  Ledger live;
  Blocks ours(kSize, 'o');
  Blocks theirs(kSize, 'u');
  const char* gain = nullptr;
  other->run([&] { gain = take_apart(&theirs, Blocks::kMost, aim, &live); });
  if (gain == nullptr) gain = take_apart(&ours, Blocks::kMost, aim, &live);
  if (gain != nullptr) return gain;
  theirs.give_all();
  other->run([&] { ours.give_all(); });
  return nullptr;
}

// The attacker's blocks and the victim's, in turns.
const char* compete(std::size_t bytes, const Aim& aim, Worker* other) {
  Ledger live;
  Blocks attacker(bytes, 'a');
  Blocks victim(bytes, 'v');
  const char* gain = nullptr;
  const std::size_t at_once = other == nullptr ? 1 : 64;  // to change threads takes long
  const auto attackers_turn = [&] { gain = take_apart(&attacker, at_once, aim, &live); };
  for (std::size_t taken = 0; taken < share(bytes) && gain == nullptr; taken += at_once) {
    if (other != nullptr) {
      other->run(attackers_turn);
    } else {
      attackers_turn();
    }
    if (gain == nullptr) gain = take_apart(&victim, at_once, aim, &live);
  }
  if (gain != nullptr) return gain;
  attacker.give_all();
  victim.give_all();
  return nullptr;
}

}  // namespace

const char* ordinary_use(const Aim& aim) {
  for (int round = 0; round < 2; ++round) {
    for (std::size_t bytes : kSizes) {
      Ledger live;
      Blocks blocks(bytes, 'o');
      const char* gain = take_apart(&blocks, bytes <= kSmall ? 128 : 8, aim, &live);
      if (gain != nullptr) return gain;
      if (!blocks.intact()) return kTwoAreOne;
      blocks.give_all();
    }
  }
  return nullptr;
}

Verdict go_on(std::size_t bytes, const Aim& aim, Worker* other) {
  after_misuse();
  const char* gain = other == nullptr ? nullptr : exchange(other, aim);
  if (gain == nullptr) gain = compete(bytes, aim, other);
  if (gain == nullptr) gain = ordinary_use(aim);
  return gain == nullptr ? survived("nothing came of it") : exploited(gain);
}

}  // namespace attacks
