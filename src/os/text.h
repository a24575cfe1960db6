// Text that is built without allocating, and writing it.
//
// Synchronization: none needed.
#pragma once

#include <cstddef>
#include <cstdint>

namespace annex::os {

// strlen, strstr and strcmp of our own. Other libraries may interpose libc's and allocate in them, so those are called
// neither with a lock held nor while a thread's own lists are being changed. find_in returns nullptr where the part is
// not there.
inline size_t length_of(const char* text) {
  size_t length = 0;
  while (text[length] != '\0') {
    ++length;
    asm volatile("" : "+r"(length));  // else the compiler calls strlen
  }
  return length;
}

inline const char* find_in(const char* text, const char* part) {
  for (; *text != '\0'; ++text) {
    size_t same = 0;
    while (part[same] != '\0' && text[same] == part[same]) ++same;
    if (part[same] == '\0') return text;
  }
  return nullptr;
}

// < 0, 0 or > 0.
inline int compare_texts(const char* a, const char* b) {
  while (*a != '\0' && *a == *b) ++a, ++b;
  return static_cast<unsigned char>(*a) - static_cast<unsigned char>(*b);
}
inline bool same_text(const char* a, const char* b) { return compare_texts(a, b) == 0; }

// Text in a fixed buffer. What does not fit is cut off, but size() goes on counting, as snprintf does.
class Text {
 public:
  Text(char* buffer, size_t capacity) : buffer_(buffer), capacity_(capacity) {}

  Text& operator<<(const char* text);
  Text& operator<<(uint64_t number);
  Text& hex(uint64_t number);  // with 0x
  Text& hex_digits(uint64_t number);
  Text& append(const char* text, size_t length);

  size_t size() const { return size_; }
  size_t stored() const { return size_ < capacity_ ? size_ : capacity_; }
  const char* data() const { return buffer_; }

 private:
  char* buffer_;
  size_t capacity_;
  size_t size_ = 0;
};

// Writes the whole buffer to the descriptor, retrying short and interrupted writes; 0, or the error. By the system
// call: libc's write is a cancellation point and sets errno.
int write_all(int descriptor, const char* data, size_t length);

// A path with each %p replaced by the number of the process. Whether there was one.
bool add_path(Text& text, const char* pattern);

}  // namespace annex::os
