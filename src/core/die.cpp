// See die.h.
#include "core/die.h"

#include <cstddef>
#include <cstdint>

#include "core/arena.h"
#include "core/chance.h"
#include "core/granule.h"
#include "os/message.h"

namespace annex {

namespace {

// Of metadata that its owner may be changing.
[[gnu::no_sanitize_thread]] void describe(os::Text& text, const Granule* granule) {
  const Granule* const head = granule->kind == Kind::kSlabTail ? granule - granule->back : granule;
  if (head->kind == Kind::kSlab) {
    text << " (in a slab; size class " << uint64_t{block_size(head->size_class)} << ")";
  } else if (head->kind == Kind::kSpan) {
    text << " (a large block; usable size " << uint64_t{head->span.bytes} << ")";
  }
}

}  // namespace

void die(const char* what, const void* address) {
  char words[80];
  os::Text text(words, sizeof words - 1);
  if (const Granule* granule = granule_of(address)) describe(text, granule);
  words[text.stored()] = '\0';
  os::fatal(what, address, words, kByChance ? "" : "annex run --mode hardened finds more");
}

}  // namespace annex
