// The end of a run by an exception that nobody catches: memory is short, or the simulator has a defect. QEMU takes the
// signal of abort() for the program's, and would go on with a thread that holds the turn and runs no more. So one line
// on stderr says what it was, and the process ends at once. The results stay as they were last written: what there is
// by then may be half changed.
#pragma once

namespace annex::sim {

inline constexpr int kDefectStatus = 125;  // exit status

// From now on, in every thread. What QEMU calls must be noexcept: an exception finds no way through QEMU's own code.
void end_on_exceptions();

}  // namespace annex::sim
