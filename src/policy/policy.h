// What this build is made of: Policy, a flavour's or an experiment's (flavours.h). The build makes the header that
// defines it and names that in ANNEX_POLICY (src/CMakeLists.txt: annex_policy). It also says which file the front end
// is in, as ANNEX_FRONT_HEADER, for front/front.h.
#pragma once

#include ANNEX_POLICY
