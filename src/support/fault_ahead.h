// Page faults ahead of need: makes clean memory resident before a growing heap asks for it, from a thread that nobody
// waits for. What has been populated is a dirty run like any other, so it is what slabs and spans take first, and it
// goes back like any other where the heap stops growing.
//
//   growing   live has reached a new peak since the last look
//   piece     = clamp(live / 32, 64 KiB, 256 KiB)
//             = 2 MiB, where slabs want huge pages and live >= 48 MiB
//   ahead     = one piece; of 2 MiB pieces, clamp(live / 32 - 2 MiB, 1 MiB, 4 MiB)
//   growing   =>  owed = ahead - dirty;  each step, while something is owed, populates one piece
//
// So what is resident and unused is at most 1/32 of the heap, or 3 MiB of more than 48 (in a smaller heap with huge
// pages, one of those: its first touch brings all of it). One piece is being populated while the program uses another:
// a thread that outruns the support core takes the faults of a third.
#pragma once

#include <cstddef>

namespace annex {

// One step; true where there is more to do. Any thread may ask, and one at a time does it; takes the page heap's lock,
// and lets go of it while the kernel works.
bool fault_ahead();

}  // namespace annex
