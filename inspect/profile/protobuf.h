// Writes protocol buffers' wire format: as much of it as profile.proto has.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace annex::inspect {

class Message {
 public:
  // Zero is what is read where a field is missing.
  void number(int field, uint64_t value) {
    if (value == 0) return;
    key(field, kVarint);
    varint(value);
  }

  void text(int field, std::string_view value) {
    key(field, kBytes);
    varint(value.size());
    bytes_ += value;
  }

  void message(int field, const Message& value) { text(field, value.bytes_); }

  void packed(int field, const std::vector<uint64_t>& values) {
    Message list;
    for (const uint64_t value : values) list.varint(value);
    message(field, list);
  }

  const std::string& bytes() const { return bytes_; }

 private:
  enum WireType { kVarint = 0, kBytes = 2 };

  void key(int field, WireType type) { varint(static_cast<uint64_t>(field) << 3 | type); }

  void varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>(value | 0x80);
    bytes_ += static_cast<char>(value);
  }

  std::string bytes_;
};

}  // namespace annex::inspect
