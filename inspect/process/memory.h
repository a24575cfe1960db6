// Another process's memory, read while the process runs: it is not stopped, no signal is sent, and nothing is put into
// it. What is read is what stood there at some moment of the call, and need not be whole.
//
// The system asks for the rights that a debugger needs (ptrace(2): access mode checking).
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>

namespace annex::inspect {

class Memory {
 public:
  explicit Memory(pid_t process) : process_(process) {}

  pid_t process() const { return process_; }

  // How many bytes could be read, from the address on: fewer where unreadable ones follow. Throws Failure where the
  // process has ended, or the system allows nothing.
  size_t read_some(uint64_t address, void* to, size_t bytes) const;
  bool read(uint64_t address, void* to, size_t bytes) const { return read_some(address, to, bytes) == bytes; }
  template <class T>
  bool read(uint64_t address, T* to) const {
    static_assert(std::is_trivially_copyable_v<T>);
    return read(address, to, sizeof *to);
  }
  template <class T>
  bool read(uint64_t address, std::span<T> to) const {
    static_assert(std::is_trivially_copyable_v<T>);
    return read(address, to.data(), to.size_bytes());
  }
  // The same where nothing can be wrong but that the process has ended, or runs another program by now: throws then.
  template <class T>
  T get(uint64_t address) const {
    T value;
    if (!read(address, &value)) fail_changed();
    return value;
  }
  template <class T>
  T get(const T* address) const {
    return get<T>(reinterpret_cast<uint64_t>(address));
  }
  // Up to a zero, or `most` bytes.
  std::string text(uint64_t address, size_t most) const;

  // Throws where that can't be done.
  void write(uint64_t address, const void* from, size_t bytes) const;

 private:
  [[noreturn]] void fail(int error) const;
  [[noreturn]] void fail_changed() const;

  pid_t process_;
};

inline uint64_t number(const void* address) { return reinterpret_cast<uint64_t>(address); }

}  // namespace annex::inspect
