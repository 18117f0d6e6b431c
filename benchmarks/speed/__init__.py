"""Speed and accuracy of the engines, mostly as ratios measured in one run: docs/benchmarks.md."""
