// Names of functions: as the compiler mangled them, as people write them, and short.
#pragma once

#include <string>

namespace annex::inspect {

// The name itself where it is no mangled one.
std::string demangled(const std::string& name);

// Without parameters, template arguments and the type of the result: "void std::vector<int>::push_back(int&&)" is
// std::vector::push_back.
std::string short_name(const std::string& name);

// The last part of a path.
std::string base_name(const std::string& path);

}  // namespace annex::inspect
