// Call stacks, for reports: taken by libc's unwinder, printed with the names of functions where libc knows them.
//
// A program that is linked statically and brings no unwinder of its own has none: then every stack is empty.
//
// Synchronization: none needed.
#pragma once

namespace annex::os {

bool call_stacks_are_available();

// Loads the unwinder, which allocates: once, at the library's start, before there is a second thread. Without this call
// every stack is empty.
void prepare_call_stacks();
bool call_stacks_are_prepared();

// The calling thread's stack, the innermost function first: return addresses, at most so many; how many there are.
// Neither locks nor allocates, where the unwinder has been prepared and finds the program's tables by itself.
int capture_stack(void** frames, int most);

class CallStack {
 public:
  // The calling thread's; the library's own functions come first.
  void capture();
  // On standard error: the title, then a line for each function. libc writes the lines, and the thread may be cancelled
  // there.
  void print(const char* title) const;

 private:
  static constexpr int kMaxFrames = 24;

  void* frames_[kMaxFrames] = {};
  int count_ = 0;
};

}  // namespace annex::os
