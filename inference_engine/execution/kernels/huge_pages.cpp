#include "huge_pages.h"

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <new>

#ifdef __linux__
#include <sys/mman.h>
#endif

namespace octavo {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;
constexpr size_t kChunk = 16 * kHugePage;  // what is never touched of it takes no memory
constexpr size_t kAlignment = 4096;

size_t rounded_up(size_t size, size_t unit) { return (size + unit - 1) / unit * unit; }

std::shared_ptr<void> new_chunk(size_t size) {
  void* memory = std::aligned_alloc(kHugePage, size);
  if (!memory) throw std::bad_alloc();
#ifdef MADV_HUGEPAGE
  madvise(memory, size, MADV_HUGEPAGE);  // refused: the pages are small ones
#endif
  return {memory, std::free};
}

}  // namespace

std::shared_ptr<void> allocate_on_huge_pages(size_t num_bytes) {
  static std::mutex mutex;
  static std::weak_ptr<void> shared_chunk;  // the one that small pieces are cut from
  static size_t num_used = 0;
  const size_t size = rounded_up(num_bytes, kAlignment);
  if (size > kChunk / 2) return new_chunk(rounded_up(size, kHugePage));
  const std::lock_guard<std::mutex> lock(mutex);
  std::shared_ptr<void> chunk = shared_chunk.lock();
  if (!chunk || num_used + size > kChunk) {
    chunk = new_chunk(kChunk);
    shared_chunk = chunk;
    num_used = 0;
  }
  void* piece = static_cast<char*>(chunk.get()) + num_used;
  num_used += size;
  return {chunk, piece};
}

}  // namespace octavo
