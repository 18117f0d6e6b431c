"""The paper, figure by figure: what each is made of, how it is drawn, what it claims.

A figure is a module of `figures` with a `FIGURE`; `registry` knows them all, `run` computes, draws, judges and
records them. `computations` has the computations that they share.
"""
