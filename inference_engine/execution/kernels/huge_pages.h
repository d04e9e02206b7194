// Memory on huge pages: a step reads all of the weights, and walks over the table of 4 KiB pages would cost it a tenth.
#pragma once

#include <cstddef>
#include <memory>

namespace octavo {

// Uninitialised, on huge pages where the system gives them; small pieces share chunks. A piece lives as long as it is
// held, its chunk as long as any of its pieces. Throws std::bad_alloc. Safe to call from any thread.
std::shared_ptr<void> allocate_on_huge_pages(size_t num_bytes);

}  // namespace octavo
