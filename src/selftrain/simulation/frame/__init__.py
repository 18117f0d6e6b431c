"""The fit in the revealed frame (see `frame_fit`): columns, passes over the samples, Newton steps,
probes.
"""
