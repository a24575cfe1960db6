// The inbox of the heap: src/remote/inbox.h and batch.h, under their names. Each atomic instruction there is a step.
//
// A plain access to what no other thread can reach is part of the step beside it: to a block that the thread has freed
// or has taken out of the inbox, and to the link of a slab that it puts into the inbox's list or has taken out of it.
// What is dead is set to 0, which the library doesn't do: leftovers would make two states of one.

short messages
byte slabs                  // the list of slabs with a batch: the first one
byte left                   // the same of what the owner has taken out of it and not taken in
byte inbox_next[SLABS + 1]  // which one is behind it
short remote[SLABS + 1]
byte complete
bool pooled

// A thread's own.
#define VARIABLES            \
  short seen;                \
  short outbox;              \
  byte carriers;             \
  short chain;               \
  byte slab, place, places;  \
  bool enters, fills, posted

#define CLEAR                                                               \
  seen = 0; outbox = 0; carriers = 0; chain = 0;                            \
  slab = 0; place = 0; places = 0; enters = false; fills = false; posted = false

hidden byte carrier
hidden short word
hidden byte the_rest_is_taken_in_before

// --- taking in, by whoever has the heap; and taking, to sort and to reap

// Within a step. Sets chain to the next of the messages taken.
inline next_chain() {
  carrier = carriers;
  carriers = NEXT(link[carrier]);
  chain = CHAIN_OF(carrier)
}

// That there is something, and the reset of the count, are one step: the count only says when to reap.
inline take_slabs() {
  if
  :: slabs == 0 -> skip
  :: atomic {
      slabs != 0 -> complete = 0
    }
    EXCHANGE(slabs, slabs, places)
  fi
}

inline take_left() {
  if
  :: left == 0 -> skip
  :: left != 0 -> TAKE_LEFT()
  fi
}

// Within a step. Sets place to the next of the slabs taken.
inline next_place() {
  place = places;
  REACH(place);
  READ_LINK_BEFORE()
}

inline receive_messages() {
  TAKE_MESSAGES();
  do
  :: carriers == 0 -> break
  :: else ->
    begin_change();
    d_step {
      next_chain();
      put_back(SLAB_OF(LAST(chain)), chain);
      chain = 0
    }
  od
}

inline receive() {
  d_step {
    next_place();
    chain = remote[place];
    remote[place] = 0
  }
  begin_change();
  d_step {
    put_back(place, chain);
    READ_LINK_AFTER();
    chain = 0;
    place = 0
  }
}

inline receive_all() {
  do
  :: places == 0 -> break
  :: else -> receive()
  od
}

// What may be there while the heap is in the pool.
inline take_in_what_was_posted() {
  receive_messages();
  take_slabs();
  receive_all()
}

inline take_in() {
  receive_messages();
#if AT_ONCE != ANY
  take_left();
  receive_all();
#endif
  take_slabs();
  receive_all()
}

// Inbox::take_in_some.
inline visit() {
#if AT_ONCE != ANY
  receive_messages();
  take_left();
  if
  :: places == 0 -> take_slabs()
  :: else -> skip
  fi;
  if
  :: places != 0 -> receive()
  :: else -> skip
  fi;
  d_step {
    LEAVE_THE_REST();
    places = 0
  }
#else
  take_in_what_was_posted()
#endif
}

inline take_in_for_the_pool() {
  lock_inbox();
  if
  :: STILL_POOLED ->
    d_step {
      the_rest_is_taken_in_before = (left == 0 || !pooled);
      assert(the_rest_is_taken_in_before)
    }
    take_in_what_was_posted()
  :: else -> skip
  fi;
  unlock_inbox()
}

// Whoever has posted looks whether the heap is in the pool.
inline look() {
  if
  :: pooled && LOOKS -> take_in_for_the_pool()
  :: else -> skip
  fi
}

// The owner leaves the heap.
inline enter_pool() {
  lock_inbox();
  MARK_AND_TAKE_IN();
  unlock_inbox()
}

// The thread becomes the owner. Nothing but the mark changes while it holds the lock: one step.
inline leave_pool() {
  atomic {
    FREE(inbox_lock) -> pooled = false
  }
}

// --- batches

// Puts a slab into the list.
inline post_slab(it) {
  d_step {
    REACH(it);
    inbox_next[it] = slabs
  }
  do
  :: d_step {
      slabs != inbox_next[it] -> REACH(it);
      inbox_next[it] = slabs
    }
  :: d_step {
      slabs == inbox_next[it] -> REACH(it);
      slabs = it
    }
    break
  od
}

// Lets go of each complete slab in the list, and posts the others again.
inline look_at_all() {
  do
  :: places == 0 -> break
  :: else ->
    d_step {
      next_place();
      fills = ALL_THERE(place)
    }
    if
    :: fills && IN_NO_LIST(place) -> let_go(place)
    :: else ->
      post_slab(place);
      posted = POSTED_AGAIN
    fi;
    fills = false;
    READ_LINK_AFTER();
    place = 0
  od
}

inline reap() {
  take_slabs();
  look_at_all()
#if AT_ONCE != ANY
  ;
  take_left();
  look_at_all()
#endif
}

// Within a step. Links the chain to what is in the batch.
inline see_batch() {
  REACH(slab);
  seen = remote[slab];
  link[LAST(chain)] = FIRST(seen)
}

// The chain goes to its slab's batch. Sets posted where a slab has gone into the list.
inline add_to_batch() {
  d_step {
    slab = SLAB_OF(LAST(chain));
    see_batch()
  }
  do
  :: d_step {
      remote[slab] != seen -> see_batch()
    }
  :: d_step {
      remote[slab] == seen -> REACH(slab);
      word = COUNT(seen) + COUNT(chain);
      enters = WAS_EMPTY(seen);
      fills = (word == CAPACITY(slab));
      if
      :: seen == 0 -> remote[slab] = chain
      :: else -> remote[slab] = WORD(word, LAST(seen), FIRST(chain))
      fi;
      seen = 0;
      chain = 0
    }
    break
  od;
  if
  :: enters ->
    enters = false;
    post_slab(slab);
    posted = true
  :: else -> skip
  fi;
  slab = 0;
  if
  :: fills ->
    d_step {
      fills = false;
      if  // no further than it is looked at
      :: complete < REAP_AT -> complete++
      :: else -> skip
      fi;
      enters = (complete == REAP_AT)
    }
    if
    :: enters -> enters = false; reap()
    :: else -> skip
    fi
  :: else -> skip
  fi
}

// Inbox::send, of the chain.
inline send() {
  posted = false;
  add_to_batch();
  if
  :: posted -> posted = false; look()
  :: else -> skip
  fi
}

// --- messages

inline sort() {
  TAKE_MESSAGES();
  do
  :: carriers == 0 -> break
  :: else ->
    d_step {
      next_chain()
    }
    add_to_batch()
  od;
  posted = false
}

// Within a step. Links the outbox's last message to those in the inbox.
inline see_messages() {
  seen = messages;
  carrier = LAST(outbox);
  link[carrier] = WORD(COUNT(link[carrier]), FIRST_BLOCK(link[carrier]), FIRST(seen))
}

// Inbox::post, of the outbox.
inline post() {
  d_step {
    see_messages()
  }
  do
  :: d_step {
      CHANGED(messages, seen) -> see_messages()
    }
  :: d_step {
      !CHANGED(messages, seen) -> word = COUNT(seen) + COUNT(outbox);
      messages = WORD(word, 0, FIRST(outbox));
      fills = (word >= SORT_AT);
      seen = 0;
      outbox = 0
    }
    break
  od;
  if
  :: fills -> fills = false; sort()
  :: else -> skip
  fi;
  look()
}
