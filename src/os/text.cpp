// Text: see text.h.
#include "os/text.h"

#include <cerrno>

#include "os/system_call.h"

namespace annex::os {

Text& Text::append(const char* text, size_t length) {
  for (size_t i = 0; i < length; ++i, ++size_) {
    if (size_ < capacity_) buffer_[size_] = text[i];
  }
  return *this;
}

Text& Text::operator<<(const char* text) { return append(text, length_of(text)); }

Text& Text::operator<<(uint64_t number) {
  char digits[20];
  size_t at = sizeof digits;
  do {
    digits[--at] = static_cast<char>('0' + number % 10);
    number /= 10;
  } while (number != 0);
  return append(digits + at, sizeof digits - at);
}

Text& Text::hex(uint64_t number) { return (*this << "0x").hex_digits(number); }

Text& Text::hex_digits(uint64_t number) {
  int shift = 60;
  while (shift > 0 && (number >> shift) == 0) shift -= 4;
  for (; shift >= 0; shift -= 4) append(&"0123456789abcdef"[(number >> shift) & 15], 1);
  return *this;
}

bool add_path(Text& text, const char* pattern) {
  bool any = false;
  for (; *pattern != '\0'; ++pattern) {
    const bool number = pattern[0] == '%' && pattern[1] == 'p';
    if (number) {
      text << static_cast<uint64_t>(system_call(SYS_getpid));
      ++pattern;
      any = true;
    } else {
      text.append(pattern, 1);
    }
  }
  return any;
}

int write_all(int descriptor, const char* data, size_t length) {
  while (length > 0) {
    const long written = system_call(SYS_write, descriptor, reinterpret_cast<long>(data), static_cast<long>(length));
    if (written == -EINTR) continue;
    if (written <= 0) return written == 0 ? ENOSPC : static_cast<int>(-written);
    data += written;
    length -= static_cast<size_t>(written);
  }
  return 0;
}

}  // namespace annex::os
