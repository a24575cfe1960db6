// Records: see records.h.
#include "profile/records.h"

#include <cstring>

#include "os/text.h"
#include "pages/page_heap.h"

namespace annex::profile {

void* new_record(size_t bytes) {
  constexpr size_t kPiece = 64 * 1024;
  static constinit char* room = nullptr;
  static constinit size_t left = 0;
  bytes = round_up(bytes, alignof(void*));
  if (bytes > kPiece) return nullptr;
  if (left < bytes) {
    void* const piece = page_heap.map_metadata(kPiece);
    if (piece == nullptr) return nullptr;
    room = static_cast<char*>(piece);
    left = kPiece;
  }
  char* const record = room;
  room += bytes;
  left -= bytes;
  return record;
}

const char* new_text(const char* text) {
  const size_t bytes = os::length_of(text) + 1;
  void* const copy = new_record(bytes);
  return copy == nullptr ? nullptr : static_cast<const char*>(memcpy(copy, text, bytes));
}

}  // namespace annex::profile
