// A helper thread that the C library does not know of.
//
// It exists so that an idle process can give memory back. A pthread would turn a single-threaded process into a
// multi-threaded one in libc's eyes: stdio and reference counts would start to lock, which is the very cost that the
// solo flavour avoids. A raw thread changes nothing of that. The price: its code may use no thread-local storage (it
// shares the starter's, errno included), no libc call beyond plain computation and the vDSO clock, and system calls
// only through system_call.h.
#pragma once

namespace annex::os {

// Runs `body` on the one helper thread, which ends when body returns. The caller makes sure (under its own lock) that
// the previous one has announced its end. All signals are blocked in it. False where no thread could be started.
bool start_helper(void (*body)());

// In a forked child, which has no helper whatever its parent had.
void forget_helper_after_fork();

// Sleeps. For use inside `body`.
void helper_sleep_ms(long milliseconds);

}  // namespace annex::os
