// What the library exports. Everything else in it is hidden.
#pragma once

#define ANNEX_EXPORT [[gnu::visibility("default")]]
