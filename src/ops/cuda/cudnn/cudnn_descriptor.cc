#include "ops/cuda/cudnn/cudnn_descriptor.h"

#include <utility>

#include "base/error.h"

namespace teratron::cuda {

Descriptor::Descriptor(const CudnnLibrary& library, cudnnBackendDescriptorType_t type, std::string_view name)
    : library_(&library), name_(name) {
  library_->require(library_->create_descriptor(type, &descriptor_), name_);
}

Descriptor::Descriptor(Descriptor&& other) noexcept
    : library_(other.library_), name_(other.name_), descriptor_(std::exchange(other.descriptor_, nullptr)) {}

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  std::swap(library_, other.library_);
  std::swap(name_, other.name_);
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

Descriptor::~Descriptor() {
  if (descriptor_ != nullptr) library_->destroy_descriptor(descriptor_);
}

void Descriptor::set_values(cudnnBackendAttributeName_t attribute, cudnnBackendAttributeType_t type, std::size_t count,
                            const void* values) {
  const cudnnStatus_t status =
      library_->set_attribute(descriptor_, attribute, type, static_cast<std::int64_t>(count), values);
  if (status == CUDNN_STATUS_SUCCESS) return;
  library_->require(status, fmt::format("attribute {} of {}", static_cast<int>(attribute), name_));
}

void Descriptor::set(cudnnBackendAttributeName_t attribute, const Descriptor& value) {
  const cudnnBackendDescriptor_t descriptor = value.get();
  set_values(attribute, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &descriptor);
}

void Descriptor::set(cudnnBackendAttributeName_t attribute, std::span<const Descriptor> values) {
  std::vector<cudnnBackendDescriptor_t> descriptors;
  for (const Descriptor& value : values) descriptors.push_back(value.get());
  set_values(attribute, CUDNN_TYPE_BACKEND_DESCRIPTOR, descriptors.size(), descriptors.data());
}

void Descriptor::finalize() { library_->require(library_->finalize(descriptor_), name_); }

bool Descriptor::try_finalize() { return library_->finalize(descriptor_) == CUDNN_STATUS_SUCCESS; }

std::int64_t Descriptor::integer(cudnnBackendAttributeName_t attribute) const {
  std::int64_t value = 0, count = 0;
  library_->require(library_->get_attribute(descriptor_, attribute, CUDNN_TYPE_INT64, 1, &count, &value), name_);
  return value;
}

std::vector<Descriptor> Descriptor::listed(cudnnBackendAttributeName_t attribute, cudnnBackendDescriptorType_t type,
                                           std::string_view name) const {
  // The library copies what it lists into objects that are there already.
  const auto read = [&](std::int64_t room, cudnnBackendDescriptor_t* to) {
    std::int64_t count = 0;
    library_->require(library_->get_attribute(descriptor_, attribute, CUDNN_TYPE_BACKEND_DESCRIPTOR, room, &count, to),
                      name_);
    return count;
  };
  std::vector<Descriptor> all;
  std::vector<cudnnBackendDescriptor_t> places;
  for (std::int64_t i = read(0, nullptr); i > 0; --i) {
    all.emplace_back(*library_, type, name);
    places.push_back(all.back().get());
  }
  if (all.empty()) return all;
  const std::int64_t count = read(static_cast<std::int64_t>(places.size()), places.data());
  all.erase(all.begin() + std::min<std::ptrdiff_t>(count, std::ssize(all)), all.end());
  return all;
}

}  // namespace teratron::cuda
