#include "model/bert_kind.h"

#include <algorithm>
#include <iterator>

#include "base/error.h"

namespace teratron {
namespace {

constexpr BertKind kKinds[] = {{.kind = ModelKind::kBert,
                                .token_types = 2,
                                .orders_sentences = true,
                                .encoder_has_pooler = true,
                                .classes_have_layer = false,
                                .choices_have_layer = false,
                                .classes_drop_input = false,
                                .pooler = Activation::kTanh,
                                .words = Activation::kNone,
                                .class_layer = "classifier"},
                               {.kind = ModelKind::kRoberta,
                                .token_types = 1,
                                .orders_sentences = false,
                                .encoder_has_pooler = true,
                                .classes_have_layer = true,
                                .choices_have_layer = false,
                                .classes_drop_input = true,
                                .pooler = Activation::kTanh,
                                .words = Activation::kGeluErf,  // whatever the configuration says
                                .class_layer = "classifier.out_proj"},
                               {.kind = ModelKind::kDistilBert,
                                .token_types = 0,
                                .orders_sentences = false,
                                .encoder_has_pooler = false,
                                .classes_have_layer = true,
                                .choices_have_layer = true,
                                .classes_drop_input = false,
                                .pooler = Activation::kRelu,
                                .words = Activation::kNone,
                                .class_layer = "classifier"}};

}  // namespace

const BertKind& bert_kind(ModelKind kind) {
  const auto* const found = std::ranges::find(kKinds, kind, &BertKind::kind);
  check(found != std::end(kKinds), "a model that reads texts");
  return *found;
}

}  // namespace teratron
