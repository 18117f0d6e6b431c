"""The explorer: a web page, served on this machine, that solves the theory as sliders are moved.

`controls` lists the inputs, `page_state` is the state of a page and its address, `cluster_texts`
reads clusters written as text, `answers` turns a state into figures (`charts`, `drawing`) and
sentences, `workers` and `jobs` compute them in other processes with time limits, `layout` and
`callbacks` are the page, `server` serves it.
"""
