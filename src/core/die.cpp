// See die.h.
#include "core/die.h"

#include <cstddef>
#include <cstdint>

#include "core/slab_record.h"
#include "os/message.h"
#include "pages/arena.h"
#include "pages/chance.h"

namespace annex {

namespace {

// Of metadata that its owner may be changing.
[[gnu::no_sanitize_thread]] void describe(os::Text& text, const Granule* granule) {
  const Granule* const head = granule->kind == Kind::kSlabTail ? granule - granule->back : granule;
  if (head->kind == Kind::kSlab) {
    text << " (in a slab; size class " << uint64_t{block_size(head->size_class)} << ")";
  } else if (head->kind == Kind::kSpan) {
    text << " (a large block; usable size " << uint64_t{static_cast<const Span*>(head)->bytes} << ")";
  }
}

}  // namespace

void die(const char* what, const void* address, const Granule* there) {
  char line[200];
  os::Text text(line, sizeof line - 1);
  text << what << " ";
  text.hex(reinterpret_cast<uintptr_t>(address));
  if (there != nullptr) describe(text, there);
  line[text.stored()] = '\0';
  os::fatal(line, kByChance ? "" : "annex run --mode hardened finds more");
}

void die_at(const char* what, const void* address) { die(what, address, granule_of(address)); }

}  // namespace annex
