// The auxiliary vector: see auxiliary.h.
#include "os/auxiliary.h"

#include <sys/auxv.h>

namespace annex::os {

const Auxiliary& auxiliary() {
  static constinit Auxiliary known = {};
  if (!__atomic_load_n(&known.asked, __ATOMIC_ACQUIRE)) {
    // Whoever comes in between finds the same.
    __atomic_store_n(&known.page_size, getauxval(AT_PAGESZ), __ATOMIC_RELAXED);
    __atomic_store_n(&known.random_bytes, getauxval(AT_RANDOM), __ATOMIC_RELAXED);
    __atomic_store_n(&known.vdso, getauxval(AT_SYSINFO_EHDR), __ATOMIC_RELAXED);
    __atomic_store_n(&known.secure, getauxval(AT_SECURE) != 0, __ATOMIC_RELAXED);
    __atomic_store_n(&known.asked, true, __ATOMIC_RELEASE);
  }
  return known;
}

}  // namespace annex::os
