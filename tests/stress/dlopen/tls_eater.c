/* A shared object that takes EATEN bytes of the static TLS block, as graphics and math libraries do. */
__thread char eaten[EATEN] __attribute__((aligned(8), tls_model("initial-exec")));

char* eat(void) { return eaten; }
