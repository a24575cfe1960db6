// The process's CPUs: see cpu_pool.h.
#include "support/cpu_pool.h"

#include "os/cpus.h"
#include "os/options.h"

namespace annex::support {

constinit CpuPool cpu_pool;

void CpuPool::fill() {
  allowed_ = os::allowed_cpus();
  usable_ = static_cast<uint32_t>(os::usable_cpus());
}

// Where the user names CPUs, they are right for whatever program thread.
os::CpuSet CpuPool::candidates(const os::CpuSet& from, uint32_t program_cpu) const {
  const os::CpuSet free = from - taken_;
  return os::options.support_cpus.empty() ? os::support_cpus(free, program_cpu) : free;
}

os::CpuSet CpuPool::take(const os::CpuSet& from, uint32_t program_cpu) {
  os::Guard guard(lock_);
  const os::CpuSet chosen = candidates(from, program_cpu);
  if (chosen.empty()) return {};
  os::bind_to(chosen);  // moves the thread to one of them, where the kernel finds it best
  os::CpuSet here;
  here.add(os::current_cpu());
  if ((here & chosen).empty()) return {};  // the system did not let it
  os::bind_to(here);
  const os::CpuSet core = os::core_of(os::current_cpu());
  taken_ = taken_ | core;
  return core;
}

void CpuPool::put_back(const os::CpuSet& core) {
  os::Guard guard(lock_);
  taken_ = taken_ - core;
  os::bind_to(allowed_);
}

void CpuPool::forget_after_fork() {
  lock_.reset_after_fork();
  taken_ = {};
  needed_.store(0, std::memory_order_relaxed);
}

}  // namespace annex::support
