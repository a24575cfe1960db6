// Call stacks: see call_stack.h.
#include "os/call_stack.h"

#include <execinfo.h>
#include <link.h>

#include <atomic>
#include <cerrno>
#include <cstdint>

#include "os/standard_error.h"
#include "os/text.h"

#pragma weak backtrace
#pragma weak backtrace_symbols_fd

namespace annex::os {

namespace {

constinit std::atomic<bool> prepared{false};

// Where the unwinder's code is.
struct Range {
  std::atomic<uintptr_t> start{0};
  std::atomic<size_t> bytes{0};
};
constinit Range unwinder;

void find_unwinder() {
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void*) {
        if (find_in(info->dlpi_name, "libgcc_s.so") == nullptr) return 0;
        for (size_t i = 0; i < info->dlpi_phnum; ++i) {
          const ElfW(Phdr)& header = info->dlpi_phdr[i];
          if (header.p_type != PT_LOAD || (header.p_flags & PF_X) == 0) continue;
          unwinder.start.store(info->dlpi_addr + header.p_vaddr, std::memory_order_relaxed);
          unwinder.bytes.store(header.p_memsz, std::memory_order_relaxed);
        }
        return 1;
      },
      nullptr);
}

}  // namespace

bool call_stacks_are_available() { return backtrace != nullptr && backtrace_symbols_fd != nullptr; }

bool call_stacks_are_prepared() { return prepared; }

void prepare_call_stacks() {
  if (!call_stacks_are_available()) return;
  const int saved = errno;
  void* frame;
  backtrace(&frame, 1);
  find_unwinder();
  errno = saved;
  prepared = true;
}

bool is_unwinder(const void* code) {
  return reinterpret_cast<uintptr_t>(code) - unwinder.start.load(std::memory_order_relaxed) <
         unwinder.bytes.load(std::memory_order_relaxed);
}

int capture_stack(void** frames, int most) {
  if (!prepared) return 0;
  const int saved = errno;
  const int count = backtrace(frames, most);
  errno = saved;
  return count;
}

void CallStack::capture() { count_ = capture_stack(frames_, kMaxFrames); }

void CallStack::print(const char* title) const {
  const int file = standard_error();
  if (count_ == 0 || file < 0) return;
  char buffer[100];
  Text text(buffer, sizeof buffer);
  text << title << "\n";
  write_all(file, buffer, text.stored());
  backtrace_symbols_fd(frames_, count_, file);
}

}  // namespace annex::os
