// Asking a process for something: it does that on its next slow path of malloc (src/os/control.h).
#pragma once

#include <chrono>
#include <cstdint>

#include "process/target.h"

namespace annex::inspect {

struct Answer {
  enum class How {
    kDone,
    kNotTakenUp,  // in time: no thread has come by. It is asked for no more
    kNotDone,     // in time: it goes on
  } how;
  uint64_t given_back = 0;  // bytes, by a trim
};

// `bits` of Control::wanted. Throws Failure where somebody else is asking.
Answer ask(const Target& target, uint32_t bits, uint64_t rate, std::chrono::milliseconds timeout);

}  // namespace annex::inspect
