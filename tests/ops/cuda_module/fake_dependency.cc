// What a fake module needs and, where the loader looks for it, is not there.
extern "C" int teratron_fake_dependency() { return 1; }
