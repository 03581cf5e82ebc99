"""Speed and memory, a module a case of `experiments.benchmark`."""
