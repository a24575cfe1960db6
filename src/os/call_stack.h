// Call stacks, for reports: taken by libc's unwinder, printed with the names of functions where libc knows them.
//
// A program that is linked statically and brings no unwinder of its own has none: then every stack is empty.
//
// Synchronization: none needed.
#pragma once

namespace annex::os {

bool call_stacks_are_there();

// Loads the unwinder, which allocates: once, at the library's start, while it is no other thread's turn. Without it
// every stack is empty.
void prepare_call_stacks();
bool call_stacks_are_prepared();

class CallStack {
 public:
  // That of the caller, who allocates or frees: the library's own functions come first.
  void take();
  // On standard error, a line for each function, below the words. libc writes the lines, where a thread may be
  // cancelled.
  void print(const char* words) const;

 private:
  static constexpr int kMost = 24;

  void* frames_[kMost] = {};
  int count_ = 0;
};

}  // namespace annex::os
