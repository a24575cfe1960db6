// The samples of a process's profile, and which of them are still in use. The process itself finds out late that one
// has been freed (src/profile/samples.h): here each block is asked.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "process/profile_copy.h"

namespace annex::inspect {

struct SampleCopy {
  uint64_t site;  // the address of it
  bool in_use;
  LiveCopy block;
};

struct Samples {
  std::unique_ptr<profile::Tables> tables;  // as they were
  std::vector<SampleCopy> all;
};

Samples copy_samples(const Target& target);

}  // namespace annex::inspect
