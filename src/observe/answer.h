// Does what another process asks for (os/control.h): annex trim, annex profile --attach.
#pragma once

namespace annex::observe {

// For pages/purger.h: answer_control.
void answer();

}  // namespace annex::observe
