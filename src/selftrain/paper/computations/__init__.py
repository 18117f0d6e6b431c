"""The computations of the figures: pure functions of plain parameters, evaluated by sweeps.

They do not depend on the code that draws, so that stored points stay valid when a figure's look is
changed.
"""
