// The functions of annex.h.
#include <algorithm>
#include <array>
#include <cerrno>

#include "annex/annex.h"
#include "entry/family.h"
#include "entry/lifetime.h"
#include "entry/visibility.h"
#include "observe/inspection.h"
#include "observe/profile_file.h"
#include "observe/report.h"
#include "observe/walk.h"
#include "os/memory_tags.h"
#include "os/options.h"
#include "pages/arena.h"
#include "profile/samples.h"
#include "sample/sampled_blocks.h"

using namespace annex;

extern "C" {

ANNEX_EXPORT const char* annex_version(void) { return annex_inspection.version; }

ANNEX_EXPORT void* annex_malloc(size_t bytes) { return Front::allocate(bytes); }
ANNEX_EXPORT void* annex_calloc(size_t count, size_t bytes) { return entry::allocate_array(count, bytes); }
ANNEX_EXPORT void annex_free(void* block) { Front::release(block); }
ANNEX_EXPORT void* annex_aligned_alloc(size_t alignment, size_t bytes) {
  return entry::allocate_aligned_checked(alignment, bytes);
}
ANNEX_EXPORT void* annex_realloc(void* block, size_t bytes) { return entry::reallocate_or_free(block, bytes); }
ANNEX_EXPORT size_t annex_usable_size(const void* block) { return block == nullptr ? 0 : Front::look_up(block).usable; }

ANNEX_EXPORT int annex_stats(annex_stats_t* out) {
  if (out == nullptr) {
    errno = EINVAL;
    return -1;
  }
  *out = observe::gather();
  return 0;
}

ANNEX_EXPORT size_t annex_stats_json(char* buffer, size_t size) {
  os::Text text(buffer, size > 0 ? size - 1 : 0);
  observe::as_json(observe::gather(), text);
  if (size > 0) buffer[text.stored()] = '\0';
  return text.size();
}

ANNEX_EXPORT size_t annex_purge(void) { return Front::give_back(); }

ANNEX_EXPORT int annex_profile_start(size_t rate) {
  if (observe::start_profile(rate != 0 ? rate : os::options.profile_rate)) return 0;
  errno = ENOTSUP;
  return -1;
}
ANNEX_EXPORT void annex_profile_stop(void) { profile::stop(); }
ANNEX_EXPORT int annex_profile_write(const char* path) {
  if (path == nullptr || *path == '\0') {
    errno = EINVAL;
    return -1;
  }
  return observe::write_profile_to(path, false) ? 0 : -1;
}
ANNEX_EXPORT int annex_profile_label(const char* key, const char* value) {
  if (key == nullptr || *key == '\0') {
    errno = EINVAL;
    return -1;
  }
  if (Front::set_label(key, value)) return 0;
  errno = ENOMEM;
  return -1;
}

ANNEX_EXPORT int annex_owns(const void* address) {
  address = os::without_tag(address);
  const Arena* arena = arena_of(address);
  if (sample::contains(address)) return true;
  return arena != nullptr && arena->granule_checked(address) != nullptr;
}

ANNEX_EXPORT int annex_heap_walk(int (*visit)(const annex_region* region, void* context), void* context) {
  const annex::Locked lock;
  return observe::walk(lock, visit, context);
}

}  // extern "C"
