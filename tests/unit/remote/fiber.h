// A fiber: a function with a stack of its own, which runs when it is resumed and until it pauses. A test that decides
// itself which of its threads goes next runs them as fibers: what happens is the same in every run, and a switch costs
// less than a microsecond.
#pragma once

#include <ucontext.h>

#include <cstddef>
#include <memory>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif

namespace annex::test {

class Fiber {
 public:
  Fiber() : stack_(new char[kStack]) {}
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // The next resume() begins a call of `body`, which must end with finish().
  void start(void (*body)()) {
    getcontext(&own_);
    own_.uc_stack.ss_sp = stack_.get();
    own_.uc_stack.ss_size = kStack;
    own_.uc_link = nullptr;
    makecontext(&own_, body, 0);
  }

  // Runs the fiber until it pauses or finishes.
  void resume() {
#if defined(__SANITIZE_ADDRESS__)
    void* shadow = nullptr;
    __sanitizer_start_switch_fiber(&shadow, stack_.get(), kStack);
#endif
    swapcontext(&caller_, &own_);
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_finish_switch_fiber(shadow, nullptr, nullptr);
#endif
  }

  // In the fiber: back to whoever resumed it.
  void pause() { leave(false); }
  [[noreturn]] void finish() {
    leave(true);
    __builtin_unreachable();
  }
  // In the fiber, before anything else.
  void entered() {
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_finish_switch_fiber(nullptr, &caller_stack_, &caller_stack_size_);
#endif
  }

 private:
  static constexpr size_t kStack = 256 * 1024;

  void leave([[maybe_unused]] bool for_good) {
#if defined(__SANITIZE_ADDRESS__)
    void* shadow = nullptr;
    __sanitizer_start_switch_fiber(for_good ? nullptr : &shadow, caller_stack_, caller_stack_size_);
#endif
    swapcontext(&own_, &caller_);
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_finish_switch_fiber(shadow, &caller_stack_, &caller_stack_size_);
#endif
  }

  std::unique_ptr<char[]> stack_;
  ucontext_t own_;
  ucontext_t caller_;
#if defined(__SANITIZE_ADDRESS__)
  const void* caller_stack_ = nullptr;
  size_t caller_stack_size_ = 0;
#endif
};

}  // namespace annex::test
