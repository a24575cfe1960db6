"""gperftools' TCMalloc with sampling, and with markers for the steps that Mallacc speeds up.

The markers are those of src/experiments/mallacc_markers.h.

Each change is a place in upstream's source, found by a line or two of it, and what stands there instead. Upstream's
tcmalloc_minimal is compiled without the counter for samples, which its full library and Mallacc's TCMalloc have; here
it has it, and the few sources that it needs. Sampling stays off at run time, as it does upstream: the counter is
counted down, and filled again every 16 MiB.
"""

import shutil
from pathlib import Path

import steps

MARKERS = Path(__file__).resolve().parent.parent / "src" / "experiments" / "mallacc_markers.h"

CHANGES = {
    "CMakeLists.txt": [
        ("add_compile_definitions(NO_TCMALLOC_SAMPLES)", ""),
        (
            "target_compile_definitions(tcmalloc_minimal PRIVATE NO_TCMALLOC_SAMPLES NO_HEAP_CHECK)",
            "target_compile_definitions(tcmalloc_minimal PRIVATE NO_HEAP_CHECK)\n"
            "target_sources(tcmalloc_minimal PRIVATE src/malloc_backtrace.cc src/stacktrace.cc\n"
            "  src/base/elf_mem_image.cc src/base/vdso_support.cc)",
        ),
    ],
    "src/thread_cache.h": [
        ('#include "linked_list.h" ', '#include "mallacc_markers.h"\n#include "linked_list.h" '),
        # A push.
        ("uint32_t Push(void* ptr) {", "uint32_t Push(void* ptr, uint32_t cl) {"),
        (
            "      SLL_Push(&list_, ptr);\n",
            "      MALLACC_PUSH_BEGIN(cl, ptr);\n      SLL_Push(&list_, ptr);\n      MALLACC_PUSH_END();\n",
        ),
        ("list->Push(ptr);", "list->Push(ptr, cl);"),
        # A pop: both reads of it, before what it writes.
        ("bool TryPop(void **rv) {", "bool TryPop(void **rv, uint32_t cl) {"),
        (
            "      if (SLL_TryPop(&list_, rv)) {\n",
            "      MALLACC_BEFORE(&list_);\n"
            "      MALLACC_POP_BEGIN(cl);\n"
            "      void* first = list_;\n"
            "      if (PREDICT_FALSE(first == NULL)) {\n"
            "        MALLACC_POP_LEFT();\n"
            "      } else {\n"
            "        void* following = SLL_Next(first);\n"
            "        MALLACC_POP_END(first, following);\n"
            "        list_ = following;\n"
            "        *rv = first;\n"
            "        MALLACC_PREFETCH(cl, following);\n",
        ),
        ("!list->TryPop(&rv)", "!list->TryPop(&rv, cl)"),
    ],
    "src/thread_cache.cc": [
        # What moves several blocks at once.
        ("  if (--fetch_count >= 0) {\n", "  MALLACC_DROP(cl);\n  if (--fetch_count >= 0) {\n"),
        (
            "  if (N > src->length()) N = src->length();\n",
            "  MALLACC_DROP(cl);\n  if (N > src->length()) N = src->length();\n",
        ),
    ],
    "src/tcmalloc.cc": [
        # malloc and operator new.
        (
            "  if (PREDICT_FALSE(!Static::sizemap()->GetSizeClass(size, &cl))) {\n"
            "    return tcmalloc::dispatch_allocate_full<OOMHandler>(size);\n"
            "  }\n\n"
            "  size_t allocated_size = Static::sizemap()->ByteSizeForClass(cl);\n\n"
            "  if (PREDICT_FALSE(!cache->TryRecordAllocationFast(allocated_size))) {\n",
            "  MALLACC_SIZE_BEGIN(size);\n"
            "  if (PREDICT_FALSE(!Static::sizemap()->GetSizeClass(size, &cl))) {\n"
            "    MALLACC_SIZE_LEFT();\n"
            "    return tcmalloc::dispatch_allocate_full<OOMHandler>(size);\n"
            "  }\n\n"
            "  size_t allocated_size = Static::sizemap()->ByteSizeForClass(cl);\n"
            "  MALLACC_SIZE_END(cl, allocated_size);\n\n"
            "  MALLACC_SAMPLE_BEGIN(allocated_size);\n"
            "  const bool counted = cache->TryRecordAllocationFast(allocated_size);\n"
            "  if (PREDICT_TRUE(counted)) {\n"
            "    MALLACC_SAMPLE_END();\n"
            "  } else {\n"
            "    MALLACC_SAMPLE_LEFT();\n",
        ),
        # operator delete with the size.
        (
            "  if (!use_hint || PREDICT_FALSE(!Static::sizemap()->GetSizeClass(size_hint, &cl))) {\n",
            "  bool found = false;\n"
            "  if (use_hint) {\n"
            "    MALLACC_SIZE_BEGIN(size_hint);\n"
            "    if (PREDICT_TRUE(Static::sizemap()->GetSizeClass(size_hint, &cl))) {\n"
            "      MALLACC_SIZE_CLASS(cl);\n"
            "      found = true;\n"
            "    } else {\n"
            "      MALLACC_SIZE_LEFT();\n"
            "    }\n"
            "  }\n"
            "  if (PREDICT_FALSE(use_hint && !found) || !use_hint) {\n",
        ),
    ],
}


def mark(source: Path) -> None:
    """Changes the source in its folder."""
    shutil.copy(MARKERS, source / "src" / MARKERS.name)
    steps.change_once(source, CHANGES)


def identity() -> list[str]:
    """What a library built with it depends on."""
    return [Path(__file__).read_text(), MARKERS.read_text()]
