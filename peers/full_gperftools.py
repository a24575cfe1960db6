"""gperftools' TCMalloc with markers, of which every malloc goes the way that upstream keeps for uncommon cases.

Until gperftools 2.6 of 2017 all mallocs went it, as those of the TCMalloc that Mallacc's paper has: a call out of line,
a thread's cache that may have to be made, hooks. Upstream's fast path is put aside, and the way has the same markers.
For one experiment: how much of Mallacc's gain hangs on the fast path around the steps that it speeds up.
"""

from pathlib import Path

import marked_gperftools
import steps

CHANGES = {
    "src/tcmalloc.cc": [
        (
            "static void * malloc_fast_path(size_t size) {\n",
            "static void * malloc_fast_path(size_t size) {\n"
            "  if (true) return tcmalloc::dispatch_allocate_full<OOMHandler>(size);\n",
        ),
        (
            "  if (PREDICT_FALSE(!Static::sizemap()->GetSizeClass(size, &cl))) {\n"
            "    return do_malloc_pages(cache_ptr.get(), size);\n"
            "  }\n\n"
            "  size_t allocated_size = Static::sizemap()->class_to_size(cl);\n"
            "  if (PREDICT_FALSE(cache_ptr->SampleAllocation(allocated_size))) {\n"
            "    return DoSampledAllocation(size);\n"
            "  }\n",
            "  MALLACC_SIZE_BEGIN(size);\n"
            "  if (PREDICT_FALSE(!Static::sizemap()->GetSizeClass(size, &cl))) {\n"
            "    MALLACC_SIZE_LEFT();\n"
            "    return do_malloc_pages(cache_ptr.get(), size);\n"
            "  }\n\n"
            "  size_t allocated_size = Static::sizemap()->class_to_size(cl);\n"
            "  MALLACC_SIZE_END(cl, allocated_size);\n\n"
            "  MALLACC_SAMPLE_BEGIN(allocated_size);\n"
            "  if (PREDICT_FALSE(cache_ptr->SampleAllocation(allocated_size))) {\n"
            "    MALLACC_SAMPLE_LEFT();\n"
            "    return DoSampledAllocation(size);\n"
            "  }\n"
            "  MALLACC_SAMPLE_END();\n",
        ),
    ],
}


def change(source: Path) -> None:
    marked_gperftools.mark(source)
    steps.change_once(source, CHANGES)


def identity() -> list[str]:
    """What a library built with it depends on."""
    return [Path(__file__).read_text(), *marked_gperftools.identity()]
