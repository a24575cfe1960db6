// The parts of the page, from page/: inspect/profile/page.cmake makes the source that has them.
#pragma once

#include <string_view>

namespace annex::inspect {

extern const std::string_view kPageHtml, kPageStyle, kPageScript;

}  // namespace annex::inspect
