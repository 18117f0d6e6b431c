"""The fit in the revealed frame: columns, passes over the rows, Newton steps, probes."""
