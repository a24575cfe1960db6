// Remote frees as a model for Spin, which tries every order of the steps of threads that free blocks of one heap, of
// threads that have the heap one after the other, and of one that forks.
//
// The model is of the protocol: src/remote, the pool of heaps (front/thread_heap.cpp) and fork, under their names. It is
// simpler than the library:
//
//   memory orders   All steps are sequentially consistent. In the library posts, takings and the mark of being pooled
//                   are; batches, the count of complete slabs and leaving the pool are weaker.
//   one heap        A thread that frees has a heap of its own, which no step here touches. Nor is there an order of
//                   several heaps' locks.
//   outboxes        A thread closes a batch, and posts its messages, whenever it likes.
//   owners          They take in whenever the inbox is not empty, of slabs AT_ONCE, and all that there is when
//                   they end. What they get back they allocate again; they free nothing themselves.
//   sizes           There are two slabs, a few blocks and small thresholds: see below.
//
// check.py runs it, for CTest. The parameters:
#ifndef BLOCKS
#define BLOCKS 3       // of the two slabs together, 7 at most; all are in use at the start
#endif
#ifndef SLAB_1
#define SLAB_1 2       // of the first slab, which is full at the start; the second one is the heap's current slab
#endif
#ifndef SORT_AT
#define SORT_AT 2      // messages from which on the thread that posts sorts them
#endif
#ifndef REAP_AT
#define REAP_AT 1      // complete slabs from which on the sorter reaps
#endif
#ifndef AT_ONCE
#define AT_ONCE 1      // slabs that an owner takes in at once; or ANY number
#endif
#ifndef SENDERS
#define SENDERS 2      // threads that free
#endif
#ifndef SENDS
#define SENDS ANY      // 1 << t: thread t may also send a batch to its slab at once, as a thread that ends does
#endif
#ifndef OWNERS
#define OWNERS 1       // threads that may have the heap; thread 0 has it at the start
#endif
#ifndef WARM
#define WARM 0         // 1: a heap may go to the pool without a flush, and be flushed there by a thread that purges
#endif
#ifndef ALLOCATIONS
#define ALLOCATIONS 0  // blocks that owners allocate and senders free again; or ANY number
#endif
#ifndef FORKER
#define FORKER NOBODY  // the thread that may fork
#endif

// Threads are numbered from 0, the owners first.
#define THREADS (OWNERS + SENDERS)
#define NOBODY 255
#define ANY 255

#include "faults.pml"
#include "words.pml"
#include "heap.pml"
#include "locks.pml"
#include "inbox.pml"
#include "fork.pml"
#include "properties.pml"
#include "threads.pml"
