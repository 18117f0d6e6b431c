"""The explorer: a page on this machine where sliders move the theory.

`controls` lists what can be set, `page_state` is the whole state of a page and its address,
`cluster_texts` reads the texts of clusters, `answers` turns a state into pictures (`charts`,
`drawing`) and sentences, `workers` and `jobs` run that in other processes with limits of time,
`layout` and `callbacks` are the page, `server` serves it.
"""
