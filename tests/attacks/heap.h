// The heap as any program calls it, and memory as any program touches it, by functions of which the compiler knows
// nothing: what is wrong with their arguments is not there for it to see, and nothing is optimised away.
#pragma once

#include <cstddef>
#include <cstdint>

namespace attacks {

// Of most attacks' blocks: small, and a size class of its own nearly everywhere.
inline constexpr std::size_t kSize = 64;
inline constexpr std::size_t kLarge = std::size_t{1} << 20;

using Word = std::uintptr_t;

template <typename T>
T opaque(T value) {
  asm volatile("" : "+r"(value) : : "memory");
  return value;
}

char* take(std::size_t bytes);  // malloc; nullptr where there is nothing
void give(void* block);         // free
void* resize(void* block, std::size_t bytes);
std::size_t room(void* block);  // malloc_usable_size

// Store by store, not by libc's memset: some allocators bring a memset of their own that looks at bounds.
void fill(void* at, char byte, std::size_t bytes);
void fill_words(void* at, Word word, std::size_t bytes);  // bytes / 8 words
bool holds_only(const void* at, char byte, std::size_t bytes);
// Is there a run of eight such bytes?
bool holds_any(const void* at, char byte, std::size_t bytes);
Word read_word(const void* at);
void write_word(void* at, Word word);

inline Word address(const void* pointer) { return reinterpret_cast<Word>(pointer); }
inline char* pointer(Word address) { return reinterpret_cast<char*>(address); }

// Does the word show where the heap is, to within 4 GiB? As an address; or as one that is mixed with the place's own,
// shifted by a page, which is no secret to whoever sees several.
inline bool tells(Word word, const char* block) {
  const Word high = address(block) >> 32;
  return word >> 32 == high || word >> 20 == high || (word ^ address(block) >> 12) >> 32 == high;
}

inline bool share_bytes(const void* a, std::size_t a_bytes, const void* b, std::size_t b_bytes) {
  return address(a) < address(b) + b_bytes && address(b) < address(a) + a_bytes;
}

}  // namespace attacks
