"""Drawing. Every function imports matplotlib when called, draws on a `Figure` of its own and
touches no global state: no pyplot, no change of rcParams."""
