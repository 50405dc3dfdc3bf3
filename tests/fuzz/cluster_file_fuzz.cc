// A cluster file: what is read is written and read again to the same cluster.
#include "cluster/cluster_file.h"
#include "fuzz.h"

void teratron::fuzz::parse(std::string_view input) {
  const Cluster cluster = cluster_from_toml(input, "a.toml");
  require(cluster_from_toml(to_toml(cluster), "b.toml") == cluster, "a cluster reads back exactly");
}
