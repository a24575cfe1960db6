// Fork (os/fork.h). A thread takes the pool's lock and the inbox's. Then it is the parent, for which nothing has
// changed, or the child, where all other threads are no more.

byte survivor = NOBODY  // in the child: the thread that has forked

#if FORKER == NOBODY
#define lost 0
#define left_there 0
#else
byte forks  // 1 while a thread is about to fork, 2 when it has. The parent may fork again; the child does not.

// In the child: the blocks that threads which are no more had in their hands, and all of a slab whose place in the list
// they had, since nobody will put it there again; and the blocks that were in the inbox.
byte lost
byte left_there
#endif

// Among what FORKER may do. Between these steps it may free and allocate: other libraries have fork handlers, too.
#define MAY_FORK                              \
  :: atomic {                                 \
      me == FORKER && forks == 0 -> forks = 1 \
    }                                         \
    begin_fork()                              \
  :: forking == me && forks == 1 -> fork()    \
  :: forking == me && forks == 2 -> end_fork()

// Of what a thread does.
#define UNLESS_NO_MORE                              \
  unless {                                          \
    atomic {                                        \
      survivor != NOBODY && survivor != me -> CLEAR \
    }                                               \
  }

inline begin_fork() {
  atomic {
    pool_lock == 0 -> pool_lock = FORKED
  }
  HOLD_INBOX();
  forking = me
}

// Within fork, which has found all that is in the inbox: the slab has a batch and is not in the list. A thread that is
// no more was about to put it there, or had taken it out.
#define PLACE_IS_LOST(slab) (remote[slab] != 0 && (found & BIT(FIRST(remote[slab]))) == 0)

inline fork() {
  if
  :: forks = 2
  :: d_step {
      forks = 2;
      survivor = me;
      find_all();
      left_there = found;
      lost = under_way & ~found | PLACE_IS_LOST(1) * BLOCKS_OF(1) | PLACE_IS_LOST(2) * BLOCKS_OF(2);
      AFTER_FORK_IN_CHILD()
    }
  fi
}

inline end_fork() {
  inbox_lock = inbox_lock & HELD;  // 0, unless somebody else held it when it should have been held across the fork
  pool_lock = 0;
  d_step {
    forking = NOBODY;
    if
    :: survivor == NOBODY -> forks = 0
    :: else -> skip
    fi
  }
}
