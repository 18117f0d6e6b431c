"""The measurements of the project: speed, accuracy, and the classifier against its competitors.

They run from a clone, not from the wheel: `python -m benchmarks` lists the commands.
"""
