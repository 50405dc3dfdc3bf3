// Loading the module of the CUDA back end, with fake ones (cuda_module/fake_module.cc): no GPU and no toolkit.
#include "ops/cuda_module.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/files/file.h"
#include "base/temporary_folder.h"
#include "ops/cuda_interface.h"

namespace teratron::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;
using Paths = std::vector<std::filesystem::path>;

const std::filesystem::path kModules = TERATRON_FAKE_MODULES;
const std::filesystem::path kWorking = kModules / "libfake_module.so";

TEST(CudaModule, IsLoadedFromTheFirstPlaceThatHasIt) {
  for (const Paths& candidates :
       {Paths{kWorking}, Paths{"/nowhere/a.so", kWorking}, Paths{kWorking, "/nowhere/a.so"}}) {
    const CudaModule& module = load_cuda_module(candidates);
    EXPECT_EQ(module.interface, kCudaInterface);
    EXPECT_EQ(module.devices(), 7);
    EXPECT_EQ(module.make_backend({}), nullptr);
  }
}

TEST(CudaModule, ThrowsOurErrorsAcrossTheBoundary) {
  const CudaModule& module = load_cuda_module(Paths{kWorking});
  EXPECT_THAT([&] { module.make_backend({.device = 8}); }, ThrowsMessage<EnvironmentError>("there is no device 8"));
  EXPECT_THAT([&] { module.make_backend({.compute_dtype = DType::kF64}); }, ThrowsMessage<UserError>("not in f64"));
}

TEST(CudaModule, ThatWasNotBuiltIsSaidWithThePlacesAndWhatToDo) {
  EXPECT_THAT(
      [] {
        load_cuda_module(Paths{"/nowhere/a.so", "/nowhere/b.so"});
      },
      ThrowsMessage<EnvironmentError>(AllOf(HasSubstr("/nowhere/a.so nor at /nowhere/b.so"),
                                            HasSubstr("-DTERATRON_CUDA=ON"), HasSubstr("--backend cpu"))));
}

TEST(CudaModule, RefusesAnotherVersion) {
  const std::filesystem::path other = kModules / "libfake_module_of_another_version.so";
  EXPECT_THAT([&] { load_cuda_module(Paths{other}); },
              ThrowsMessage<EnvironmentError>(
                  AllOf(HasSubstr(other.string()), HasSubstr("0.0.1-abc"), HasSubstr(std::string(kCudaInterface)))));
}

TEST(CudaModule, WithoutALibraryThatItNeedsSaysWhich) {
  EXPECT_THAT([] { load_cuda_module(Paths{kModules / "libfake_module_without_its_dependency.so"}); },
              ThrowsMessage<EnvironmentError>(AllOf(HasSubstr("libfake_dependency.so: cannot open shared object file"),
                                                    HasSubstr("LD_LIBRARY_PATH"))));
}

TEST(CudaModule, ThatIsSomethingElseIsRefused) {
  const TemporaryFolder folder;
  const std::filesystem::path text = folder.path() / "text.so";
  write_file_atomically(text, std::string(100, '#'));
  EXPECT_THAT([&] { load_cuda_module(Paths{text}); }, ThrowsMessage<EnvironmentError>(HasSubstr("invalid ELF header")));
  EXPECT_THAT([] { load_cuda_module(Paths{kModules / "dependency/libfake_dependency.so"}); },
              ThrowsMessage<EnvironmentError>(HasSubstr("has no function teratron_cuda_module")));
}

}  // namespace
}  // namespace teratron::testing
