// What an attack is, and how a trial tells how far it came: lines on standard output, written at once, so that they are
// there however the process ends.
//
//   call | access        the misuse begins: a call that must not be made, a read or write where none may be
//   after                it is over and the process still runs: what follows is correct use of the heap
//   gain: WHAT           the attacker has something, which the program has not used yet
//   survived: | exploited: | refused: WHY      the verdict, where the process comes to its end
#pragma once

#include <cstddef>
#include <span>

namespace attacks {

struct Verdict {
  enum class Kind { kSurvived, kExploited, kRefused };
  Kind kind;
  const char* why;
};

inline Verdict survived(const char* why) { return {Verdict::Kind::kSurvived, why}; }
inline Verdict exploited(const char* what) { return {Verdict::Kind::kExploited, what}; }
// The call said no: returned NULL where it could not give what was asked for.
inline Verdict refused(const char* why) { return {Verdict::Kind::kRefused, why}; }

struct Attack {
  const char* name;
  const char* gain;  // what the attacker gets where it works
  const char* what;
  Verdict (*run)();
};

struct AttackClass {
  const char* name;
  std::span<const Attack> attacks;
};

void before_call();
void before_access();
void after_misuse();
// A check may still end the process before the program uses what was changed; where none does, it was exploited.
void gained(const char* what);
[[noreturn]] void end(Verdict verdict);
// The trial could not be made, and proves nothing.
[[noreturn]] void broken(const char* why);

}  // namespace attacks
