// cuDNN's objects are "backend descriptors": attributes are set, then one is finalized and never changes. This owns
// one.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "ops/cuda/cudnn/cudnn_library.h"

namespace teratron::cuda {

// What the library calls the types of attributes.
template <class T>
constexpr cudnnBackendAttributeType_t kAttributeType = T::is_no_type_of_attribute;
template <>
inline constexpr cudnnBackendAttributeType_t kAttributeType<cudnnDataType_t> = CUDNN_TYPE_DATA_TYPE;
template <>
inline constexpr cudnnBackendAttributeType_t kAttributeType<cudnnPointwiseMode_t> = CUDNN_TYPE_POINTWISE_MODE;
template <>
inline constexpr cudnnBackendAttributeType_t kAttributeType<cudnnReduceTensorOp_t> = CUDNN_TYPE_REDUCTION_OPERATOR_TYPE;
template <>
inline constexpr cudnnBackendAttributeType_t kAttributeType<cudnnBackendHeurMode_t> = CUDNN_TYPE_HEUR_MODE;
template <>
inline constexpr cudnnBackendAttributeType_t kAttributeType<cudnnHandle_t> = CUDNN_TYPE_HANDLE;
template <>
inline constexpr cudnnBackendAttributeType_t kAttributeType<bool> = CUDNN_TYPE_BOOLEAN;
template <>
inline constexpr cudnnBackendAttributeType_t kAttributeType<std::int64_t> = CUDNN_TYPE_INT64;
template <>
inline constexpr cudnnBackendAttributeType_t kAttributeType<void*> = CUDNN_TYPE_VOID_PTR;

// EnvironmentErrors name the object and, for an attribute, its number in cudnnBackendAttributeName_t.
class Descriptor {
 public:
  // `name` says in errors what it is, and must outlive it.
  Descriptor(const CudnnLibrary& library, cudnnBackendDescriptorType_t type, std::string_view name);
  Descriptor(Descriptor&& other) noexcept;
  Descriptor& operator=(Descriptor&& other) noexcept;
  ~Descriptor();
  cudnnBackendDescriptor_t get() const { return descriptor_; }

  template <class T>
  void set(cudnnBackendAttributeName_t attribute, std::span<const T> values) {
    set_values(attribute, kAttributeType<T>, values.size(), values.data());
  }
  template <class T>
  void set(cudnnBackendAttributeName_t attribute, const T& value) {
    set(attribute, std::span<const T>(&value, 1));
  }
  void set(cudnnBackendAttributeName_t attribute, const Descriptor& value);
  void set(cudnnBackendAttributeName_t attribute, std::span<const Descriptor> values);
  void finalize();
  bool try_finalize();  // false: the library refuses

  std::int64_t integer(cudnnBackendAttributeName_t attribute) const;
  // The objects that the library lists in an attribute, each of the type given.
  std::vector<Descriptor> listed(cudnnBackendAttributeName_t attribute, cudnnBackendDescriptorType_t type,
                                 std::string_view name) const;

 private:
  void set_values(cudnnBackendAttributeName_t attribute, cudnnBackendAttributeType_t type, std::size_t count,
                  const void* values);

  const CudnnLibrary* library_;
  std::string_view name_;
  cudnnBackendDescriptor_t descriptor_ = nullptr;
};

}  // namespace teratron::cuda
