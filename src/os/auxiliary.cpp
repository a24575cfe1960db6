// The auxiliary vector: see auxiliary.h.
#include "os/auxiliary.h"

#include <sys/auxv.h>

namespace annex::os {

const Auxiliary& auxiliary() {
  static constinit Auxiliary known = {};
  if (!known.is_read.load(std::memory_order_acquire)) {
    known.page_size.store(getauxval(AT_PAGESZ), std::memory_order_relaxed);
    known.random_bytes.store(getauxval(AT_RANDOM), std::memory_order_relaxed);
    known.vdso.store(getauxval(AT_SYSINFO_EHDR), std::memory_order_relaxed);
    known.secure.store(getauxval(AT_SECURE) != 0, std::memory_order_relaxed);
    known.is_read.store(true, std::memory_order_release);
  }
  return known;
}

}  // namespace annex::os
