// Reports: see faults.h.
#include "sample/faults.h"

#include <signal.h>
#include <ucontext.h>

#include "os/message.h"
#include "sample/place.h"

namespace annex::sample {

namespace {

constinit struct sigaction previous = {};  // handling of SIGSEGV, the program's

// " (8 bytes behind the end of a sampled block of 40 bytes)"
void describe(os::Text& text, const char* address, const Page* page) {
  const char* const block = page->block();
  const char* const end = block + page->bytes;
  text << " (";
  if (address < block) {
    text << static_cast<uint64_t>(block - address) << " bytes before";
  } else if (address >= end) {
    text << static_cast<uint64_t>(address - end) << " bytes behind the end of";
  } else if (address > block) {
    text << static_cast<uint64_t>(address - block) << " bytes into";
  } else {
    text << "the start of";
  }
  text << " a sampled block of " << static_cast<uint64_t>(page->bytes) << " bytes)";
}

void print(const char* what, const Event& event) {
  char title[60];
  os::Text text(title, sizeof title - 1);
  text << "  " << what << " by thread " << static_cast<uint64_t>(event.thread) << ":";
  title[text.stored()] = '\0';
  event.stack.print(title);
}

// Whose block an address was probably meant for, which may lie on a guard page: that of the page nearer to it; where
// that one has never had a block, of the page on the other side.
const Page* nearest(const char* address) {
  if (const Page* page = page_at(address)) return page;
  const size_t size = os::page_size();
  const size_t index = static_cast<size_t>(address - first_page) / size;  // even
  const bool first_half = static_cast<size_t>(address - first_page) % size < size / 2;
  const Page* const page_before = index > 0 ? &pages[index / 2 - 1] : nullptr;
  const Page* const page_after = index < 2 * kPages ? &pages[index / 2] : nullptr;
  const auto known = [](const Page* page) { return page != nullptr && page->state != State::kUnused; };
  if (first_half) return known(page_before) || !known(page_after) ? page_before : page_after;
  return known(page_after) || !known(page_before) ? page_after : page_before;
}

// What was done there; not every machine says whether it was a write.
const char* access_of([[maybe_unused]] const ucontext_t* context, bool freed) {
#ifdef __x86_64__
  constexpr greg_t kWrite = 2;
  const bool write = (context->uc_mcontext.gregs[REG_ERR] & kWrite) != 0;
  if (freed) return write ? "a write to a freed block:" : "a read of a freed block:";
  return write ? "a write outside of a block:" : "a read outside of a block:";
#else
  return freed ? "a read or write of a freed block:" : "a read or write outside of a block:";
#endif
}

void on_fault(int signal, siginfo_t* info, void* context) {
  const char* const address = static_cast<const char*>(info->si_addr);
  if (info->si_code > 0 && contains(address)) {
    const Page* page = nearest(address);
    const bool freed = page != nullptr && page->state == State::kFreed;
    end_process(access_of(static_cast<const ucontext_t*>(context), freed), address, page);
  }
  if ((previous.sa_flags & SA_SIGINFO) != 0) return previous.sa_sigaction(signal, info, context);
  if (previous.sa_handler != SIG_DFL && previous.sa_handler != SIG_IGN) return previous.sa_handler(signal);
  // A fault occurs again when this returns; a signal that was sent (si_code <= 0) has to be sent again.
  if (info->si_code <= 0 && previous.sa_handler == SIG_IGN) return;
  sigaction(signal, &previous, nullptr);
  if (info->si_code <= 0) raise(signal);
}

}  // namespace

void catch_faults() {
  struct sigaction action = {};
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  sigaction(SIGSEGV, &action, &previous);
}

void end_process(const char* what, const void* address, const Page* page) {
  char line[200];
  os::Text text(line, sizeof line - 1);
  text << what << " ";
  text.hex(reinterpret_cast<uintptr_t>(address));
  const bool known = page != nullptr && page->state != State::kUnused;
  if (known) describe(text, static_cast<const char*>(address), page);
  line[text.stored()] = '\0';
  os::Ending ending(line);
  if (known) {
    print("allocated", page->allocated);
    if (page->state == State::kFreed) print("freed", page->freed);
  }
  ending.end();
}

}  // namespace annex::sample
