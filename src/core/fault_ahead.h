// Page faults ahead of need: makes clean memory resident before a growing heap asks for it, from a thread that nobody
// waits for. What has been populated is a dirty run like any other, so it is what slabs and spans take first, and it goes
// back like any other where the heap stops growing.
//
//   growing   live has reached a new peak since the last look
//   ahead     = clamp(live / 32, 256 KiB, 4 MiB); where slabs want huge pages at least one of 2 MiB
//   each step, while something is owed:  populates one piece of 256 KiB (a huge page: 2 MiB)
//   growing   =>  owed = ahead - dirty
//
// So what is resident and unused is at most 1/32 of the heap, or one piece.
#pragma once

#include <cstddef>

namespace annex {

// One step; true where there is more to do. For one thread at a time; takes the arena lock, and lets go of it while the
// kernel works.
bool fault_ahead();

}  // namespace annex
