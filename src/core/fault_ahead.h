// Page faults ahead of need: makes clean memory resident before a growing heap asks for it, from a thread that nobody
// waits for. What has been populated is a dirty run like any other, so it is what slabs and spans take first, and it
// goes back like any other where the heap stops growing.
//
//   growing   live has reached a new peak since the last look
//   ahead     = clamp(live / 32, 64 KiB, 4 MiB)
//   piece     = clamp(live / 32, 64 KiB, 256 KiB); where slabs want huge pages and live / 32 holds one, 2 MiB
//   growing   =>  owed = ahead - dirty;  each step, while something is owed, populates one piece
//
// So what is resident and unused is at most 1/32 of the heap and one piece (in a heap with huge pages, one of those:
// its first touch brings all of it).
#pragma once

#include <cstddef>

namespace annex {

// One step; true where there is more to do. For one thread at a time; takes the arena lock, and lets go of it while the
// kernel works.
bool fault_ahead();

}  // namespace annex
