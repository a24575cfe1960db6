// Faults to put in by name (-DBUG_...), each of which Spin must find: see CMakeLists.txt. The #else is what is right.

// A post stores where it should compare and swap.
#ifdef BUG_POST_OVERWRITES
#define CHANGED(word, seen) false
#else
#define CHANGED(word, seen) (word != seen)
#endif

// Taking reads what is there, and then writes that nothing is.
#ifdef BUG_TAKES_WITHOUT_EXCHANGE
#define EXCHANGE(from, part, to) to = part; from = 0
#else
#define EXCHANGE(from, part, to) d_step { to = part; from = 0 }
#endif

// The same, but what has changed in between stays; what was read is spliced all the same, perhaps by two.
#ifdef BUG_SPLICES_WHAT_IT_HAS_NOT_TAKEN
#define TAKE_MESSAGES()                                    \
  d_step { seen = messages; carriers = FIRST(messages) }   \
  d_step {                                                 \
    if                                                     \
    :: messages == seen -> messages = 0                    \
    :: else -> skip                                        \
    fi;                                                    \
    seen = 0                                               \
  }
#else
#define TAKE_MESSAGES() EXCHANGE(messages, FIRST(messages), carriers)
#endif

// The owner or a reaper takes what the owner has left, and says only then that nothing is left there.
#ifdef BUG_TAKES_THE_REST_WITHOUT_EXCHANGE
#define TAKE_LEFT() places = left; left = 0
#else
#define TAKE_LEFT() EXCHANGE(left, left, places)
#endif

// The owner forgets what it does not take in.
#ifdef BUG_FORGETS_THE_REST
#define LEAVE_THE_REST() skip
#else
#define LEAVE_THE_REST()                 \
  if                                     \
  :: places != 0 -> left = places        \
  :: else -> skip                        \
  fi
#endif

// The owner that goes to the pool takes in what was posted, and leaves the rest.
#ifdef BUG_POOLS_THE_REST
#define TAKE_IN_ALL() take_in_what_was_posted()
#else
#define TAKE_IN_ALL() take_in()
#endif

// Whoever has posted does not look whether the heap has been pooled.
#ifdef BUG_POSTER_DOES_NOT_LOOK
#define LOOKS false
#else
#define LOOKS true
#endif

// A reaper that has posted slabs again does not look.
#ifdef BUG_REAPER_DOES_NOT_LOOK
#define POSTED_AGAIN posted
#else
#define POSTED_AGAIN true
#endif

// A sender that has waited for the lock does not look again: the heap may have an owner.
#ifdef BUG_TAKES_IN_FOR_AN_OWNER
#define STILL_POOLED true
#else
#define STILL_POOLED pooled
#endif

// Whoever purges flushes a heap in the pool without its lock.
#ifdef BUG_FLUSHES_WITHOUT_THE_LOCK
#define MAY_FLUSH true
#else
#define MAY_FLUSH FREE(inbox_lock)
#endif

// The owner that leaves takes in first, and marks the heap as pooled then.
#ifdef BUG_TAKES_IN_BEFORE_IT_MARKS
#define MARK_AND_TAKE_IN() TAKE_IN_ALL(); pooled = true
#else
#define MARK_AND_TAKE_IN() pooled = true; TAKE_IN_ALL()
#endif

// The sorter puts into the list a slab that is there.
#ifdef BUG_LISTS_A_SLAB_TWICE
#define WAS_EMPTY(batch) true
#else
#define WAS_EMPTY(batch) (batch == 0)
#endif

// The reaper lets go of the slab that the heap allocates from.
#ifdef BUG_REAPS_A_CURRENT_SLAB
#define IN_NO_LIST(slab) (state[slab] != Partial)
#else
#define IN_NO_LIST(slab) (state[slab] == Full)
#endif

// The reaper lets go of slabs that have blocks in use.
#ifdef BUG_REAPS_TOO_EARLY
#define ALL_THERE(slab) true
#else
#define ALL_THERE(slab) (COUNT(remote[slab]) == CAPACITY(slab))
#endif

// Which slab is behind one in the list is read when that one may be in the list again.
#ifdef BUG_LINK_IS_READ_TOO_LATE
#define READ_LINK_BEFORE() skip
#define READ_LINK_AFTER() places = inbox_next[place]
#else
#define READ_LINK_BEFORE() places = inbox_next[place]; inbox_next[place] = 0
#define READ_LINK_AFTER() skip
#endif

// The thread that forks does not hold the inbox's lock.
#ifdef BUG_FORKS_WITHOUT_THE_LOCK
#define HOLD_INBOX() skip
#else
#define HOLD_INBOX() atomic { inbox_lock == 0 -> inbox_lock = FORKED }
#endif

// The child puts into its pool the heap of a thread that is no more.
#ifdef BUG_CHILD_POOLS_A_HEAP
#define AFTER_FORK_IN_CHILD()                                 \
  if                                                          \
  :: me >= OWNERS && !pooled -> pooled = true; in_pool = true \
  :: else -> skip                                             \
  fi
#else
#define AFTER_FORK_IN_CHILD() skip
#endif
