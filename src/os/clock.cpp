// Clocks: see clock.h.
#include "os/clock.h"

#include <elf.h>

#include <cstddef>

#include "os/auxiliary.h"
#include "os/system_call.h"

namespace annex::os {

namespace {

using ReadClock = int(clockid_t, struct timespec*);

#if defined(__x86_64__)
constexpr char kName[] = "__vdso_clock_gettime";
#elif defined(__aarch64__)
constexpr char kName[] = "__kernel_clock_gettime";
#endif

int call_kernel(clockid_t clock, struct timespec* time) {
  return static_cast<int>(system_call(SYS_clock_gettime, clock, reinterpret_cast<long>(time)));
}

bool equal(const char* a, const char* b) {
  while (*a != '\0' && *a == *b) ++a, ++b;
  return *a == *b;
}

// How many symbols a GNU hash table has: up to the end of the chain that begins last.
uint32_t count_by_gnu_hash(const uint32_t* table) {
  const uint32_t buckets = table[0], first = table[1], words = table[2];
  const uint32_t* const bucket = table + 4 + size_t{words} * 2;
  const uint32_t* const chain = bucket + buckets;
  uint32_t last = 0;
  for (uint32_t i = 0; i < buckets; ++i) last = bucket[i] > last ? bucket[i] : last;
  if (last < first) return first;
  while ((chain[last - first] & 1) == 0) ++last;
  return last + 1;
}

// The vDSO's function of that name; nullptr where there is none.
ReadClock* find(uintptr_t image) {
  if (image == 0) return nullptr;
  const auto* const header = reinterpret_cast<const Elf64_Ehdr*>(image);
  const auto* const segments = reinterpret_cast<const Elf64_Phdr*>(image + header->e_phoff);
  const Elf64_Dyn* entry = nullptr;
  uintptr_t load_bias = image;  // where the library lies, less where its own addresses say
  bool loaded = false;
  for (const Elf64_Phdr* segment = segments; segment < segments + header->e_phnum; ++segment) {
    if (segment->p_type == PT_DYNAMIC) entry = reinterpret_cast<const Elf64_Dyn*>(image + segment->p_offset);
    if (segment->p_type == PT_LOAD && !loaded) load_bias = image + segment->p_offset - segment->p_vaddr;
    loaded = loaded || segment->p_type == PT_LOAD;
  }
  if (entry == nullptr || !loaded) return nullptr;
  const Elf64_Sym* symbols = nullptr;
  const char* names = nullptr;
  uint32_t count = 0;
  for (; entry->d_tag != DT_NULL; ++entry) {
    const uintptr_t at = entry->d_un.d_ptr + (entry->d_un.d_ptr < image ? load_bias : 0);
    if (entry->d_tag == DT_SYMTAB) symbols = reinterpret_cast<const Elf64_Sym*>(at);
    if (entry->d_tag == DT_STRTAB) names = reinterpret_cast<const char*>(at);
    if (entry->d_tag == DT_HASH) count = reinterpret_cast<const uint32_t*>(at)[1];
    if (entry->d_tag == DT_GNU_HASH && count == 0) count = count_by_gnu_hash(reinterpret_cast<const uint32_t*>(at));
  }
  if (symbols == nullptr || names == nullptr) return nullptr;
  for (const Elf64_Sym* symbol = symbols; symbol < symbols + count; ++symbol) {
    if (symbol->st_shndx != SHN_UNDEF && equal(names + symbol->st_name, kName))
      return reinterpret_cast<ReadClock*>(load_bias + symbol->st_value);
  }
  return nullptr;
}

// The first call finds the function, for all that follow.
int read_first(clockid_t clock, struct timespec* time);
constinit ReadClock* function = read_first;

int read_first(clockid_t clock, struct timespec* time) {
  ReadClock* const found = find(auxiliary().vdso);
  __atomic_store_n(&function, found != nullptr ? found : call_kernel, __ATOMIC_RELAXED);
  return read_clock(clock, time) ? 0 : -1;
}

}  // namespace

bool read_clock(clockid_t clock, struct timespec* time) {
  return __atomic_load_n(&function, __ATOMIC_RELAXED)(clock, time) == 0;
}

}  // namespace annex::os
