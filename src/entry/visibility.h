// Everything in the library is hidden but what is marked with this.
#pragma once

#define ANNEX_EXPORT [[gnu::visibility("default")]]
