// A dependency of a fake module that is not where the loader looks.
extern "C" int teratron_fake_dependency() { return 1; }
