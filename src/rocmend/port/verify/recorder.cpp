// Records launches of kernels: their arguments, and the memory that these lead to, before and after.
//
// Linked into a program with --wrap for the functions below, it sees the program's own calls of the runtime, however
// that is linked. A launch is written down only where an argument list and memory are all that it depends on: none
// where the program has variables on the device or textures, where an argument or a buffer holds a pointer, or where
// memory was come by in a way that is not seen here. What is not recorded is told, once a kernel and reason; what is
// the same again, or more than is kept of a kernel, is not.
#include <cuda_runtime.h>

#include <cctype>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#if CUDART_VERSION < 12040
#error "recording launches needs the runtime of CUDA 12.4 or newer"
#endif

extern "C" {
cudaError_t __real_cudaMalloc(void **, size_t);
cudaError_t __real_cudaMallocManaged(void **, size_t, unsigned);
cudaError_t __real_cudaMallocAsync(void **, size_t, cudaStream_t);
cudaError_t __real_cudaFree(void *);
cudaError_t __real_cudaFreeAsync(void *, cudaStream_t);
cudaError_t __real_cudaLaunchKernel(const void *, dim3, dim3, void **, size_t, cudaStream_t);
cudaError_t __real_cudaLaunchCooperativeKernel(const void *, dim3, dim3, void **, size_t, cudaStream_t);
cudaError_t __real_cudaLaunchKernelExC(const cudaLaunchConfig_t *, const void *, void **);
#if CUDART_VERSION >= 13000  // what nvcc makes of <<<>>> from then on
cudaError_t __real___cudaLaunchKernel(cudaKernel_t, dim3, dim3, void **, size_t, cudaStream_t);
cudaError_t __real___cudaGetKernel(cudaKernel_t *, const void *);
#endif
void __real___cudaRegisterVar(void **, char *, char *, const char *, int, size_t, int, int);
void __real___cudaRegisterManagedVar(void **, void **, char *, const char *, int, size_t, int, int);
cudaError_t __real_cudaCreateTextureObject(cudaTextureObject_t *, const cudaResourceDesc *, const cudaTextureDesc *,
                                           const cudaResourceViewDesc *);
cudaError_t __real_cudaCreateSurfaceObject(cudaSurfaceObject_t *, const cudaResourceDesc *);
}

namespace {

constexpr size_t MOST_BYTES = size_t(16) << 20;  // of memory, for one launch
constexpr size_t MOST_OF_ALL = size_t(256) << 20;
constexpr int MOST_OF_A_KERNEL = 2;
constexpr int MOST_LAUNCHES = 64;
constexpr size_t MOST_ARGUMENTS = 256;
const char *const UNNAMED = "unnamed";  // a kernel whose name is not told

struct State {
  std::recursive_mutex mutex;
  std::map<uintptr_t, size_t> memory;
  std::map<cudaKernel_t, const void *> kernels;
  std::map<std::string, int> launches;  // by kernel
  std::set<std::string> shapes;
  std::set<std::string> told;
  std::string hidden;  // what kernels may depend on beside their arguments
  int count = 0;
  size_t bytes = 0;
};

State &state() {
  static State *the = new State;  // never destroyed: others free memory after main
  return *the;
}

struct Buffer {
  uintptr_t base;
  size_t size;
  std::vector<char> before;
};

std::string folder() {
  const char *named = std::getenv("ROCMEND_RECORD");
  return named ? named : "";
}

void note(const std::string &kernel, const std::string &reason) {
  const std::string line = kernel + "\t" + reason + "\n";
  if (!state().told.insert(line).second) return;
  if (FILE *file = std::fopen((folder() + "/notes").c_str(), "a")) {
    std::fputs(line.c_str(), file);
    std::fclose(file);
  }
}

void hide(const std::string &what) {
  std::lock_guard<std::recursive_mutex> guard(state().mutex);
  if (state().hidden.empty()) state().hidden = what;
}

// Whether a variable, by its mangled name, is one of CUDA's C++ libraries: their headers bring objects that hold
// nothing (cuda::std::__4::__cpo::begin, thrust::THRUST_300001_SM_900_NS::placeholders::_1). Namespaces named after the
// libraries' versions tell them from a project's own namespace of the same name.
bool of_libraries(const char *name) {
  if (!name || std::strncmp(name, "_ZN", 3) != 0) return false;
  std::string library;
  for (const char *at = name + 3; std::isdigit(static_cast<unsigned char>(*at));) {
    char *begin = nullptr;
    const size_t length = std::strtoul(at, &begin, 10);
    if (length > std::strlen(begin)) return false;
    const std::string part(begin, length);
    at = begin + length;
    if (library.empty()) {
      if (part.rfind("_INTERNAL_", 0) == 0 || part.rfind("_GLOBAL__N_", 0) == 0) continue;  // a source's own copy
      if (part != "cuda" && part != "thrust" && part != "cub") return false;
      library = part;
    } else if (library == "cuda") {
      if (part.size() > 2 && part.rfind("__", 0) == 0 && std::isdigit(static_cast<unsigned char>(part[2]))) return true;
    } else {
      return part.rfind(library == "cub" ? "CUB_" : "THRUST_", 0) == 0;
    }
  }
  return false;
}

void hide_variable(const char *name) {
  if (!of_libraries(name)) hide("variables on the device");
}

void took(cudaError_t error, void **pointer, size_t size) {
  if (error != cudaSuccess || !pointer || !*pointer) return;
  std::lock_guard<std::recursive_mutex> guard(state().mutex);
  state().memory[reinterpret_cast<uintptr_t>(*pointer)] = size;
}

void gave(void *pointer) {
  std::lock_guard<std::recursive_mutex> guard(state().mutex);
  state().memory.erase(reinterpret_cast<uintptr_t>(pointer));
}

// The allocation that an address lies in.
const std::pair<const uintptr_t, size_t> *holding(uintptr_t address) {
  auto next = state().memory.upper_bound(address);
  if (next == state().memory.begin()) return nullptr;
  --next;
  return address < next->first + next->second ? &*next : nullptr;
}

bool holds_pointers(const char *data, size_t size) {
  for (size_t at = 0; at + 8 <= size; at += 8) {
    uintptr_t word;
    std::memcpy(&word, data + at, 8);
    if (word && holding(word)) return true;
  }
  return false;
}

// Memory of the device, or pinned on the host, that no call seen here allocated.
bool unseen(uintptr_t address) {
  cudaPointerAttributes attributes{};
  if (cudaPointerGetAttributes(&attributes, reinterpret_cast<void *>(address)) != cudaSuccess) {
    cudaGetLastError();
    return false;
  }
  return attributes.type != cudaMemoryTypeUnregistered;
}

bool save(const std::string &path, const std::vector<char> &data) {
  FILE *file = std::fopen(path.c_str(), "wb");
  if (!file) return false;
  const bool done = std::fwrite(data.data(), 1, data.size(), file) == data.size();
  return std::fclose(file) == 0 && done;
}

cudaError_t snapshot(const Buffer &buffer, std::vector<char> &into) {
  into.resize(buffer.size);
  return cudaMemcpy(into.data(), reinterpret_cast<void *>(buffer.base), buffer.size, cudaMemcpyDeviceToHost);
}

class Recording {
 public:
  void begin(const void *function, dim3 grid, dim3 block, void **arguments, size_t lds, cudaStream_t stream) {
    if (folder().empty()) return;
    const cudaError_t earlier = cudaPeekAtLastError();
    const char *name = nullptr;
    const cudaError_t unnamed = cudaFuncGetName(&name, function);
    kernel_ = unnamed == cudaSuccess && name ? name : UNNAMED;
    // An error that the program has not read yet is left as it is: nothing here may clear it.
    if (earlier != cudaSuccess) return failed("before its launch a call, or a kernel, had failed", earlier);
    if (kernel_ == UNNAMED) {
      cudaGetLastError();
      return failed("the CUDA runtime does not give its name", unnamed);
    }
    cudaStreamCaptureStatus capturing = cudaStreamCaptureStatusNone;
    if (cudaStreamIsCapturing(stream, &capturing) != cudaSuccess || capturing != cudaStreamCaptureStatusNone) {
      cudaGetLastError();
      return note(kernel_, "it is launched during graph capture");
    }
    char shape[160];
    std::snprintf(shape, sizeof shape, "grid %u %u %u\nblock %u %u %u\nlds %zu\n", grid.x, grid.y, grid.z, block.x,
                  block.y, block.z, lds);
    State &all = state();
    if (all.count >= MOST_LAUNCHES || all.launches[kernel_] >= MOST_OF_A_KERNEL) return;
    if (all.shapes.count(kernel_ + shape)) return;
    if (!all.hidden.empty()) return note(kernel_, "the program has " + all.hidden + ", which a recorded case cannot hold");
    text_ = "kernel " + kernel_ + "\n" + shape;
    if (!arguments_of(function, arguments)) return;
    const cudaError_t before = cudaDeviceSynchronize();
    if (before != cudaSuccess) return failed("an earlier kernel failed", before);
    size_t size = 0;
    for (const Buffer &buffer : buffers_) size += 2 * buffer.size;
    if (all.bytes + size > MOST_OF_ALL) return note(kernel_, "the limit of 256 MiB of recordings was reached");
    all.bytes += size;
    for (Buffer &buffer : buffers_) {
      const cudaError_t read = snapshot(buffer, buffer.before);
      if (read != cudaSuccess) return unread("its memory cannot be read", read);
      if (holds_pointers(buffer.before.data(), buffer.before.size())) return note(kernel_, "a buffer holds pointers");
    }
    all.shapes.insert(kernel_ + shape);
    ready_ = true;
  }

  void finish(cudaError_t launched) {
    if (!ready_) return;
    if (launched != cudaSuccess) return failed("its launch failed", launched);
    const cudaError_t pending = cudaPeekAtLastError();
    const cudaError_t ended = pending == cudaSuccess ? cudaDeviceSynchronize() : pending;
    if (ended != cudaSuccess) return failed("it failed", ended);
    State &all = state();
    const std::string path = folder() + "/" + std::to_string(all.count);
    for (size_t number = 0; number < buffers_.size(); ++number) {
      std::vector<char> after;
      const std::string file = path + "." + std::to_string(number);
      const cudaError_t read = snapshot(buffers_[number], after);
      if (read != cudaSuccess) return unread("its memory cannot be read after it", read);
      if (!save(file + ".in", buffers_[number].before) ||
          (after != buffers_[number].before && !save(file + ".out", after))) {
        return note(kernel_, "its buffers could not be saved");
      }
    }
    if (!save(path + ".launch", std::vector<char>(text_.begin(), text_.end()))) {
      return note(kernel_, "its arguments could not be saved");
    }
    ++all.count;
    ++all.launches[kernel_];
  }

 private:
  void failed(const char *what, cudaError_t error) {
    note(kernel_, std::string(what) + ": " + cudaGetErrorString(error));
  }

  // The error is of a call made here: the program is not to see it.
  void unread(const char *what, cudaError_t error) {
    cudaGetLastError();
    failed(what, error);
  }

  bool arguments_of(const void *function, void **arguments) {
    size_t total = 0;
    for (size_t index = 0;; ++index) {
      size_t offset = 0, size = 0;
      if (index >= MOST_ARGUMENTS || cudaFuncGetParamInfo(function, index, &offset, &size) != cudaSuccess) {
        cudaGetLastError();
        return true;
      }
      const char *bytes = static_cast<const char *>(arguments[index]);
      uintptr_t address = 0;
      if (size == 8) std::memcpy(&address, bytes, 8);
      if (const auto *found = address ? holding(address) : nullptr) {
        size_t number = 0;
        while (number < buffers_.size() && buffers_[number].base != found->first) ++number;
        if (number == buffers_.size()) {
          buffers_.push_back({found->first, found->second, {}});
          total += found->second;
        }
        text_ += "buffer " + std::to_string(number) + " " + std::to_string(address - found->first) + "\n";
        if (total > MOST_BYTES) return note(kernel_, "its buffers are larger than 16 MiB"), false;
        continue;
      }
      if (address && unseen(address)) return note(kernel_, "an argument points to memory whose allocation was not seen"), false;
      if (holds_pointers(bytes, size)) return note(kernel_, "an argument holds pointers"), false;
      text_ += "value ";
      for (size_t at = 0; at < size; ++at) {
        char digits[3];
        std::snprintf(digits, sizeof digits, "%02x", static_cast<unsigned char>(bytes[at]));
        text_ += digits;
      }
      text_ += "\n";
    }
  }

  std::string kernel_, text_;
  std::vector<Buffer> buffers_;
  bool ready_ = false;
};

// Tells of a launch of a kind that is not recorded.
void pass(const void *function, const char *reason) {
  if (folder().empty()) return;
  std::lock_guard<std::recursive_mutex> guard(state().mutex);
  const bool clean = cudaPeekAtLastError() == cudaSuccess;
  const char *name = nullptr;
  const bool named = cudaFuncGetName(&name, function) == cudaSuccess && name;
  if (!named && clean) cudaGetLastError();
  note(named ? name : UNNAMED, reason);
}

}  // namespace

extern "C" {

cudaError_t __wrap_cudaMalloc(void **pointer, size_t size) {
  const cudaError_t error = __real_cudaMalloc(pointer, size);
  took(error, pointer, size);
  return error;
}

cudaError_t __wrap_cudaMallocManaged(void **pointer, size_t size, unsigned flags) {
  const cudaError_t error = __real_cudaMallocManaged(pointer, size, flags);
  took(error, pointer, size);
  return error;
}

cudaError_t __wrap_cudaMallocAsync(void **pointer, size_t size, cudaStream_t stream) {
  const cudaError_t error = __real_cudaMallocAsync(pointer, size, stream);
  took(error, pointer, size);
  return error;
}

cudaError_t __wrap_cudaFree(void *pointer) {
  gave(pointer);
  return __real_cudaFree(pointer);
}

cudaError_t __wrap_cudaFreeAsync(void *pointer, cudaStream_t stream) {
  gave(pointer);
  return __real_cudaFreeAsync(pointer, stream);
}

cudaError_t __wrap_cudaLaunchKernel(const void *function, dim3 grid, dim3 block, void **arguments, size_t lds,
                                    cudaStream_t stream) {
  std::lock_guard<std::recursive_mutex> guard(state().mutex);
  Recording recording;
  recording.begin(function, grid, block, arguments, lds, stream);
  const cudaError_t error = __real_cudaLaunchKernel(function, grid, block, arguments, lds, stream);
  recording.finish(error);
  return error;
}

cudaError_t __wrap_cudaLaunchCooperativeKernel(const void *function, dim3 grid, dim3 block, void **arguments,
                                               size_t lds, cudaStream_t stream) {
  pass(function, "its launch is cooperative, which a recorded case cannot hold");
  return __real_cudaLaunchCooperativeKernel(function, grid, block, arguments, lds, stream);
}

cudaError_t __wrap_cudaLaunchKernelExC(const cudaLaunchConfig_t *config, const void *function, void **arguments) {
  pass(function, "its launch has attributes, which a recorded case cannot hold");
  return __real_cudaLaunchKernelExC(config, function, arguments);
}

#if CUDART_VERSION >= 13000
cudaError_t __wrap___cudaGetKernel(cudaKernel_t *kernel, const void *function) {
  const cudaError_t error = __real___cudaGetKernel(kernel, function);
  std::lock_guard<std::recursive_mutex> guard(state().mutex);
  if (error == cudaSuccess && kernel) state().kernels[*kernel] = function;
  return error;
}

cudaError_t __wrap___cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **arguments, size_t lds,
                                      cudaStream_t stream) {
  std::lock_guard<std::recursive_mutex> guard(state().mutex);
  const auto found = state().kernels.find(kernel);
  if (found == state().kernels.end()) {
    if (!folder().empty()) note(UNNAMED, "it is launched through an unknown kernel handle");
    return __real___cudaLaunchKernel(kernel, grid, block, arguments, lds, stream);
  }
  Recording recording;
  recording.begin(found->second, grid, block, arguments, lds, stream);
  const cudaError_t error = __real___cudaLaunchKernel(kernel, grid, block, arguments, lds, stream);
  recording.finish(error);
  return error;
}
#endif

void __wrap___cudaRegisterVar(void **module, char *host, char *device, const char *name, int external, size_t size,
                              int constant, int global) {
  hide_variable(name);
  __real___cudaRegisterVar(module, host, device, name, external, size, constant, global);
}

void __wrap___cudaRegisterManagedVar(void **module, void **host, char *device, const char *name, int external,
                                     size_t size, int constant, int global) {
  hide_variable(name);
  __real___cudaRegisterManagedVar(module, host, device, name, external, size, constant, global);
}

cudaError_t __wrap_cudaCreateTextureObject(cudaTextureObject_t *object, const cudaResourceDesc *resource,
                                           const cudaTextureDesc *texture, const cudaResourceViewDesc *view) {
  hide("textures");
  return __real_cudaCreateTextureObject(object, resource, texture, view);
}

cudaError_t __wrap_cudaCreateSurfaceObject(cudaSurfaceObject_t *object, const cudaResourceDesc *resource) {
  hide("surfaces");
  return __real_cudaCreateSurfaceObject(object, resource);
}

}  // extern "C"
