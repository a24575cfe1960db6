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

// Where the user has named CPUs, any of those will do for any program thread.
os::CpuSet CpuPool::candidates(const os::CpuSet& from, uint32_t program_cpu) const {
  os::CpuSet free = from;
  for (size_t cpu = 0; cpu < os::kMaxCpus; ++cpu) {
    if (taken_.has(cpu)) free = free - os::core_of(cpu);
  }
  return os::options.support_cpus.empty() ? os::support_cpus(free, program_cpu) : free;
}

bool CpuPool::has_one(const os::CpuSet& from, uint32_t program_cpu) {
  os::Guard guard(lock_);
  return !candidates(from, program_cpu).empty();
}

os::CpuSet CpuPool::take(const os::CpuSet& from, uint32_t program_cpu) {
  os::Guard guard(lock_);
  const os::CpuSet chosen = candidates(from, program_cpu);
  if (chosen.empty()) return {};
  os::bind_to(chosen);  // moves the thread to one of them, where the kernel finds it best
  os::CpuSet here;
  here.add(os::current_cpu());
  if ((here & chosen).empty()) return {};  // the system has refused
  os::bind_to(here);
  taken_ = taken_ | here;
  return here;
}

void CpuPool::put_back(const os::CpuSet& cpu) {
  os::Guard guard(lock_);
  taken_ = taken_ - cpu;
  os::bind_to(allowed_);
}

void CpuPool::forget_after_fork() {
  taken_ = {};
  needed_.store(0, std::memory_order_relaxed);
}

}  // namespace annex::support
