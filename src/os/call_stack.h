// Call stacks, for reports: taken by libc's unwinder, printed with the names of functions where libc knows them.
//
// A program that is linked statically and brings no unwinder of its own has none: then every stack is empty.
//
// Synchronization: any thread.
#pragma once

namespace annex::os {

bool call_stacks_are_available();

// Loads the unwinder, which allocates and takes the loader's lock. Without this call every stack is empty.
void prepare_call_stacks();
bool call_stacks_are_prepared();

// The calling thread's stack, the innermost function first: return addresses, at most so many; how many there are.
// Where the program has registered frames (__register_frame, as compilers at run time do), the unwinder takes a lock of
// its own, and may allocate with it held.
int capture_stack(void** frames, int most);
// Whether that is code of the unwinder: what it allocates has no call stack, as it may hold that lock.
bool is_unwinder(const void* code);

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
