// Work on several threads, each item taken by whichever thread is free: on shared cores none waits for another's
// share. What an item computes must not depend on who computes it.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>

namespace octavo {

// Whose threads these are is for who links the kernels to say: torch's, in spread.cpp.
int64_t num_threads();
void on_threads(int64_t count, const std::function<void()>& work);  // work() on up to so many threads; at least once

// Calls work(item) for every item, in rising order on each thread.
template <typename Work>
void spread(int64_t num_items, const Work& work) {
  std::atomic<int64_t> num_taken{0};
  on_threads(std::min(num_threads(), num_items), [&] {
    for (int64_t item = num_taken++; item < num_items; item = num_taken++) work(item);
  });
}

}  // namespace octavo
