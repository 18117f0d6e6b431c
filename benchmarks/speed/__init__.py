"""Speed and accuracy of the engines, as ratios measured in one run: docs/benchmarks.md."""
