// What another process may ask of this one (inspect/process: annex trim, annex profile --attach). It writes here by
// process_vm_writev, with the rights that a debugger needs, and the next slow path of malloc does what is asked
// (pages/purger.h). Nothing is looked at here unless Books::slow_path_called says so, which the other process sets
// last. So a process of which nobody asks anything pays nothing.
//
// One asks at a time: whoever finds `wanted` not 0 comes too late. Who gives up waiting withdraws: writes 0 there.
#pragma once

#include <atomic>
#include <cstdint>

namespace annex::os {

struct Control {
  // Bits of `wanted`.
  static constexpr uint32_t kTrim = 1;          // give back what is free, as annex_purge
  static constexpr uint32_t kStartProfile = 2;  // begin a profile at `rate`, where there is none
  static constexpr uint32_t kStopProfile = 4;   // end it

  // Written by who asks, `wanted` last; 0 again when it has been taken up.
  std::atomic<uint32_t> wanted{0};
  // How often something has been asked and done, and what the last trim gave back, in bytes.
  std::atomic<uint32_t> done{0};
  std::atomic<uint64_t> rate{0};  // bytes between two samples
  std::atomic<uint64_t> given_back{0};
};

inline constinit Control control;

}  // namespace annex::os
