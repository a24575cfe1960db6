// Restartable sequences: see restartable.h.
#include "guest/restartable.h"

#include <cerrno>

#include "guest/guest_memory.h"

namespace annex::sim {

constexpr uint32_t kUnregister = 1;  // RSEQ_FLAG_UNREGISTER

int64_t Restartable::call(Address area, uint32_t bytes, uint32_t flags, unsigned core) {
  if (flags == kUnregister) {
    if (area_ != area) return -EINVAL;
    area_ = 0;
    return 0;
  }
  if (area_ != 0) return area_ == area ? -EBUSY : -EINVAL;
  if (flags != 0 || bytes < sizeof(RestartableArea) || area % alignof(RestartableArea) != 0) return -EINVAL;
  if (!read_guest<RestartableArea>(area)) return -EFAULT;
  area_ = area;
  tell(core);
  return 0;
}

void Restartable::tell(unsigned core) {
  static_assert(offsetof(RestartableArea, core_at_start) == 0 && offsetof(RestartableArea, core) == sizeof(uint32_t));
  const uint32_t both[] = {core, core};
  write_guest(area_, both);
  told_ = core;
}

bool Restartable::in_sequence(Address sequence, Address code) {
  const auto found = read_guest<RestartableSequence>(sequence);
  return found && code - found->start < found->bytes;
}

}  // namespace annex::sim
