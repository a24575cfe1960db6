"""The scorecard of attacks: small programs that misuse the heap, under several allocators, and what becomes of each."""
