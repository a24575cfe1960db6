// Memory tags: see memory_tags.h.
#include "os/memory_tags.h"

#ifdef __aarch64__

#include <sys/auxv.h>
#include <sys/prctl.h>

#include "os/pages.h"
#include "os/system_call.h"

#ifndef HWCAP2_MTE
#define HWCAP2_MTE (1ul << 18)
#endif
#ifndef PR_SET_TAGGED_ADDR_CTRL
#define PR_SET_TAGGED_ADDR_CTRL 55
#define PR_TAGGED_ADDR_ENABLE 1ul
#endif
#ifndef PR_MTE_TCF_SYNC
#define PR_MTE_TCF_SYNC (1ul << 1)
#define PR_MTE_TAG_SHIFT 3
#endif
#ifndef PROT_MTE
#define PROT_MTE 0x20
#endif

namespace annex::os {

constinit bool memory_tags = false;

bool enable_memory_tags() {
  if (memory_tags) return true;
  if ((getauxval(AT_HWCAP2) & HWCAP2_MTE) == 0) return false;
  constexpr unsigned long kAllButZero = 0xfffe;
  const long wanted = static_cast<long>(PR_TAGGED_ADDR_ENABLE | PR_MTE_TCF_SYNC | kAllButZero << PR_MTE_TAG_SHIFT);
  if (system_call(SYS_prctl, PR_SET_TAGGED_ADDR_CTRL, wanted) != 0) return false;
  add_protection(PROT_MTE);
  memory_tags = true;
  return true;
}

}  // namespace annex::os

#endif
