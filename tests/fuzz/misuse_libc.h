// What libc holds of the heap under test, of which no ledger knows. For each new thread it takes a block by calloc (the
// thread's dtv): for the trial's own threads, and for those that Annex itself starts in the midst of a trial. Such a
// block may lie where one was that the trial has freed; a second free of that is the first of libc's, and cannot be
// found.
//
// Synchronization: any thread may take; asked between rounds (misuse_crew.h).
#pragma once

namespace annex_test {

// Whether libc has taken a block that starts there. It may have freed it since: that one we leave alone too.
bool libc_took(const void* start);

bool libc_took_any();

}  // namespace annex_test
