// The pool's lock and the inbox's. The thread that forks holds both, and is let into them (os/lock.h).

#define HELD 1
#define FORKED 2  // held across a fork
#define FREE(lock) (lock == 0 || (lock == FORKED && forking == me))

byte forking = NOBODY  // the thread that holds all locks, for a fork
byte inbox_lock
byte pool_lock  // FORKED or 0: whoever else takes it does one thing to the pool and lets go, which is one step

inline lock_inbox() {
  atomic {
    FREE(inbox_lock) -> inbox_lock = inbox_lock | HELD
  }
}

inline unlock_inbox() {
  inbox_lock = inbox_lock & FORKED
}
