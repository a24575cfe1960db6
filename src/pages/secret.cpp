// The process's secret: see secret.h.
#include "pages/secret.h"

#include "os/random.h"

namespace annex {

constinit Secret secret = {0, 1, 1};

void Secret::draw() {
  addend = os::random_word();
  factor = os::random_word() | 1;
  second_factor = os::random_word() | 1;
}

}  // namespace annex
