// Restartable sequences: see restartable.h.
#include "guest/restartable.h"

#include <linux/rseq.h>

#include <cerrno>
#include <cstddef>

#include "guest/guest_memory.h"

namespace annex::sim {

int64_t Restartable::call(Address area, uint32_t bytes, uint32_t flags, unsigned core) {
  if (flags == RSEQ_FLAG_UNREGISTER) {
    if (area_ != area) return -EINVAL;
    area_ = 0;
    return 0;
  }
  if (area_ != 0) return area_ == area ? -EBUSY : -EINVAL;
  if (flags != 0 || bytes < sizeof(struct rseq) || area % alignof(struct rseq) != 0) return -EINVAL;
  if (!read_guest<struct rseq>(area)) return -EFAULT;
  area_ = area;
  tell(core);
  return 0;
}

void Restartable::tell(unsigned core) {
  static_assert(offsetof(struct rseq, cpu_id_start) == 0 && offsetof(struct rseq, cpu_id) == sizeof(uint32_t));
  const uint32_t both[] = {core, core};
  write_guest(area_, both);
  told_ = core;
}

bool Restartable::in_sequence(Address sequence, Address code) {
  static_assert(offsetof(struct rseq, rseq_cs) == kSequence);
  const auto found = read_guest<struct rseq_cs>(sequence);
  return found && code - found->start_ip < found->post_commit_offset;
}

}  // namespace annex::sim
