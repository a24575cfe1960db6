// The lines that a trial writes; see attack.h. Nothing here uses the heap.
#include <unistd.h>

#include "attack.h"

namespace attacks {
namespace {

const char* gain = nullptr;

void line(const char* head, const char* text) {
  char buffer[256];
  std::size_t length = 0;
  for (const char* part : {head, text, "\n"}) {
    for (; *part != 0 && length < sizeof buffer; ++part) buffer[length++] = *part;
  }
  if (write(STDOUT_FILENO, buffer, length) < 0) _exit(3);
}

}  // namespace

void before_call() { line("call", ""); }
void before_access() { line("access", ""); }
void after_misuse() { line("after", ""); }

void gained(const char* what) {
  if (gain == nullptr) line("gain: ", what);
  gain = what;
}

void end(Verdict verdict) {
  if (verdict.kind == Verdict::Kind::kSurvived && gain != nullptr) verdict = exploited(gain);
  constexpr const char* kHeads[] = {"survived: ", "exploited: ", "refused: "};
  line(kHeads[static_cast<int>(verdict.kind)], verdict.why);
  _exit(0);  // what the heap has become is not looked at any more
}

void broken(const char* why) {
  line("broken: ", why);
  _exit(3);
}

}  // namespace attacks
