// See heap.h.
#include "heap.h"

#include <malloc.h>

#include <cstdlib>

namespace attacks {

char* take(std::size_t bytes) { return static_cast<char*>(opaque(malloc(opaque(bytes)))); }
void give(void* block) { free(opaque(block)); }
void* resize(void* block, std::size_t bytes) { return opaque(realloc(opaque(block), opaque(bytes))); }
std::size_t room(void* block) { return malloc_usable_size(opaque(block)); }

void fill(void* at, char byte, std::size_t bytes) {
  volatile char* to = static_cast<char*>(opaque(at));
  for (std::size_t i = 0; i < bytes; ++i) to[i] = byte;
}

void fill_words(void* at, Word word, std::size_t bytes) {
  for (std::size_t i = 0; i + sizeof word <= bytes; i += sizeof word) write_word(static_cast<char*>(at) + i, word);
}

bool holds_only(const void* at, char byte, std::size_t bytes) {
  const volatile char* from = static_cast<const char*>(opaque(at));
  for (std::size_t i = 0; i < bytes; ++i) {
    if (from[i] != byte) return false;
  }
  return true;
}

bool holds_any(const void* at, char byte, std::size_t bytes) {
  const volatile char* from = static_cast<const char*>(opaque(at));
  std::size_t run = 0;
  for (std::size_t i = 0; i < bytes; ++i) {
    run = from[i] == byte ? run + 1 : 0;
    if (run == 8) return true;
  }
  return false;
}

Word read_word(const void* at) { return *static_cast<const volatile Word*>(opaque(at)); }
void write_word(void* at, Word word) { *static_cast<volatile Word*>(opaque(at)) = word; }

}  // namespace attacks
